"""Files that others can read: policies as safetensors and as ONNX graphs."""
