"""Parts that keep the reader of event logs fast and its memory small for logs of many GB."""
