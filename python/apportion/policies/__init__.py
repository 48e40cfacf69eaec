"""Policy files: rules that set settings and hints for queries whose SQL you cannot edit.

from apportion.policies import Policies, Rule

rule = Rule(match={"user": "dbt"}, settings={"max_parallelism": 64}, name="dbt")
Policies([rule]).save("policies.yaml")
"""

from apportion.policies.checks import PolicyError
from apportion.policies.files import Problem, check, load
from apportion.policies.rules import Policies, Rule

__all__ = ["Policies", "PolicyError", "Problem", "Rule", "check", "load"]
