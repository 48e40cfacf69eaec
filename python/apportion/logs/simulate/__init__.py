"""Simulation of event logs in other scenarios; `apportion.simulate` for users."""

from apportion.logs.simulate.replay import Outcome, StageOutcome
from apportion.logs.simulate.scenarios import Scenario
from apportion.logs.simulate.scheduler import Loss
from apportion.logs.simulate.simulation import Simulation, simulate

__all__ = ["Loss", "Outcome", "Scenario", "Simulation", "StageOutcome", "simulate"]
