"""Keys that fall evenly over tasks: surrogates for Spark, and where Flink puts keys.

from apportion.keys import flink, spread

spread(events, "tenant", 16).repartition(16, "even_key")
flink.operator_index(flink.key_group("Berlin", 128), 5)
"""

from apportion.keys import flink
from apportion.keys.columns import MOST_VALUES
from apportion.keys.spreading import spread

__all__ = ["MOST_VALUES", "flink", "spread"]
