"""`bakeoff doctor`: whether this machine is fit to measure. One module for each group of checks.

A check is a function of a `Sight` that gives Findings; it reads, and changes nothing.
"""
