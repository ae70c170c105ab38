"""The Hydra plugin: hands the command line to runner.sweep and runner.launch.

Hydra accepts plugins only in a namespace package of this name; it finds this one because runner.application puts
`runner/_ext` on sys.path. It executes the file before naming it in sys.modules: no dataclass can live here.
"""

from __future__ import annotations

from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

from runner.job import Job
from runner.launch import run_sweep
from runner.sweep import expand, plan, suite_lines

ConfigStore.instance().store(
    group="hydra/sweeper",
    name="bakeoff",
    node={
        "_target_": "hydra_plugins.bakeoff_sweeper.BakeoffSweeper",
        "max_batch_size": 1,  # runs per launch; more is for launchers that run several at once
        "params": None,  # axes, as Hydra's basic sweeper takes them
        "sweeps": None,  # the lines of a suite
    },
    provider="bakeoff",
)


class BakeoffSweeper(Sweeper):
    """Composes and checks every cell, then has every run launched. What came of it is in the job's `result`."""

    def __init__(self, max_batch_size: int, params: Any, sweeps: Any) -> None:
        self.max_batch_size = max_batch_size
        self.hydra_context: HydraContext
        self.config: DictConfig
        self.launcher: Launcher
        self.job: Job

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Called by Hydra."""
        assert isinstance(task_function, Job)
        self.hydra_context, self.config, self.job = hydra_context, config, task_function
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> None:
        """`arguments`: the task overrides that Hydra saw, namely the choice of a suite. Raises Refused."""
        loader = self.hydra_context.config_loader
        # Not from the constructor: there, interpolations meant for a cell would have been resolved.
        settings: Any = OmegaConf.to_container(self.config.hydra.sweeper, resolve=False)
        params = [f"{key}={value}" for key, value in (settings["params"] or {}).items()]
        wanted = expand(
            suite_lines(settings["sweeps"]),
            arguments,
            [*params, *self.job.overrides],
            OverridesParser.create(config_loader=loader),
        )
        cells = plan(wanted, lambda overrides: loader.load_sweep_config(self.config, list(overrides)))
        run_sweep(self.job, cells, self.launcher.launch, self.max_batch_size)
