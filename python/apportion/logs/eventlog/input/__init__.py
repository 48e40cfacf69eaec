"""Input of the reader: files of logs, their formats, and checked values of events."""
