"""From irscope's graphs to StableHLO text, which the reader reads to the same graphs."""
