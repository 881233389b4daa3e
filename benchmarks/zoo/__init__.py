"""Nets of torchvision, timm, transformers and keras, run by irscope's command line and held against their frameworks."""
