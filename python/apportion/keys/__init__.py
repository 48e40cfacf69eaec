"""Even keys: surrogates that spread a small number of keys evenly over tasks, in Spark and Flink.

from apportion.keys import flink, spread

spread(events, "tenant", 16).repartition(16, "even_key")
flink.operator_index(flink.key_group("Berlin", 128), 5)
"""

from apportion.keys import flink
from apportion.keys.columns import MOST_VALUES
from apportion.keys.spreading import spread

__all__ = ["MOST_VALUES", "flink", "spread"]
