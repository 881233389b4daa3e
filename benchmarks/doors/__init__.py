"""One net through four doors: a ``.pt2`` archive, its printed program, TorchScript and ONNX."""
