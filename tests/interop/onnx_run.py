"""onnx_run.py FOLDER -- runs the models that onnx_files wrote there with onnxruntime: the same results as tern's."""
import glob
import os
import sys

try:
    import numpy
    import onnx
    import onnxruntime
except ImportError as error:
    print("SKIP: " + str(error))
    sys.exit(77)

folder, failures, count = sys.argv[1], 0, 0
for path in sorted(glob.glob(os.path.join(folder, "*.onnx"))):
    name = os.path.basename(path)[:-5]
    count += 1
    try:
        onnx.checker.check_model(path, full_check=True)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        inputs = {x.name: numpy.load("%s/%s.in%d.npy" % (folder, name, i))
                  for i, x in enumerate(session.get_inputs())}
        for i, y in enumerate(session.run(None, inputs)):
            numpy.testing.assert_allclose(y, numpy.load("%s/%s.out%d.npy" % (folder, name, i)), rtol=1e-4, atol=2e-5)
    except Exception as error:
        failures += 1
        print("FAIL %s: %s" % (name, " ".join(str(error).split())[:300]))
print("%d models, %d failures; onnx %s, onnxruntime %s" % (count, failures, onnx.__version__, onnxruntime.__version__))
sys.exit(1 if failures or not count else 0)
