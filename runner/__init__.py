"""The runner: composes scenarios, runs them in fresh processes, saves and reports what was measured."""
