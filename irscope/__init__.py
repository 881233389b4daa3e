"""irscope reads what machine-learning compilers print."""
__version__ = "0.1.0"
