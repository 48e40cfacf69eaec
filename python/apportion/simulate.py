"""Simulation of event logs in other scenarios: settings, slots, lost executors, sizes of the data.

application = apportion.eventlog.read("logs/local-1700000000000.zstd")
simulation = simulate(application, [Scenario("wide", slots=160)])
for row in simulation.rows:
    print(row.name, row.total.makespan)
"""

from apportion.logs.simulate import *  # noqa: F403
