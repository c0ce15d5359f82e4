"""Released models as models of other libraries: scikit-learn and ONNX."""
