"""models_options.py -- what can be chosen of the models of the comparison."""
# What can be chosen of a model; the other side reads it from the bundle. dtype: f32, or that of
# autocast. clip: the largest norm of the gradients.
OPTIONS = {
    "a": dict(lr=0.01),
    "b": dict(lr=0.01),
    "c": dict(lr=1e-3),
    "d": dict(lr=0.1),
    "e": dict(lr=1e-3, vocabulary=65, layers=4, width=128, heads=4, context=64, batch=16),
    "f": dict(lr=1e-3),
    "gpt2": dict(lr=3e-4, vocabulary=50257, layers=12, width=768, heads=12, context=1024, batch=16,
                 tied=1, dtype="bf16", clip=1.0),
    "resnet50": dict(lr=0.01, width=64, blocks="3-4-6-3", classes=1000, side=224, batch=128,
                     dtype="f16"),
}


def options_of(name, changes):
    """Defaults, then changes "key=value" in the defaults' own types."""
    found = dict(OPTIONS.get(name, {}))
    for key, value in (x.split("=") for x in changes):
        found[key] = type(found[key])(value)
    return found
