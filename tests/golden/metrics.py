#!/usr/bin/env python3
"""metrics.py -- what torchmetrics computes: prints metrics.txt. Inputs stand in it too; each metric is updated
with the first 40 rows and then with the other 24. Made with torchmetrics 1.9 and PyTorch 2.15."""
import warnings

import torch
import torchmetrics as tm
from torchmetrics.text import BLEUScore, Perplexity

from golden import show as show_all

def show(name, value):
    show_all(name, value, lambda v: "%.9g" % v)


warnings.simplefilter("ignore")
torch.manual_seed(11)
N, C = 64, 5
FIRST = 40


def gather(name, metric, *inputs):
    metric.update(*(x[:FIRST] for x in inputs))
    metric.update(*(x[FIRST:] for x in inputs))
    show(name, metric.compute())


print("# made by metrics.py with torchmetrics", tm.__version__)
scores = torch.randn(N, C)
classes = torch.randint(0, C, (N,))
classes[classes == 3] = 1  # a class that is never the target
scores[torch.arange(0, N, 2), classes[::2]] += 2
volume, volume_classes = torch.randn(N, C, 3), torch.randint(0, C, (N, 3))
labels, logits = (torch.rand(N, C) < 0.4).long(), torch.randn(N, C)
labels[::7, 2] = -1
bits, chances = (torch.rand(N) < 0.4).long(), torch.round(torch.rand(N) * 20) / 20
numbers, wanted = torch.randn(N, 3), torch.randn(N, 3)
words, said = torch.randn(N, 7, 11), torch.randint(0, 11, (N, 7))
said[:, 5:] = -100
for name in ("scores", "classes", "volume", "volume_classes", "labels", "logits", "bits", "chances", "numbers",
             "wanted", "words", "said"):
    show(name, globals()[name])

STATS = {"accuracy": tm.Accuracy, "precision": tm.Precision, "recall": tm.Recall, "specificity": tm.Specificity,
         "f1_score": tm.F1Score, "jaccard_index": tm.JaccardIndex}
AVERAGES = ("micro", "macro", "weighted", "none")
multi = dict(task="multiclass", num_classes=C)
label = dict(task="multilabel", num_labels=C, ignore_index=-1)
for name, make in STATS.items():
    gather("%s.binary" % name, make(task="binary"), chances, bits)
    gather("%s.binary.high" % name, make(task="binary", threshold=0.75), chances, bits)
    for average in AVERAGES:
        gather("%s.multiclass.%s" % (name, average), make(average=average, **multi), scores, classes)
        gather("%s.ignored.%s" % (name, average), make(average=average, ignore_index=1, **multi), scores, classes)
        gather("%s.volume.%s" % (name, average), make(average=average, **multi), volume, volume_classes)
        gather("%s.multilabel.%s" % (name, average), make(average=average, **label), logits, labels)
        if name != "jaccard_index":
            gather("%s.top2.%s" % (name, average), make(average=average, top_k=2, **multi), scores, classes)
gather("fbeta_score", tm.FBetaScore(beta=2.0, average="macro", **multi), scores, classes)
for normalize in ("none", "true", "pred", "all"):
    gather("confusion_matrix.binary.%s" % normalize, tm.ConfusionMatrix(task="binary", normalize=normalize), chances,
           bits)
    gather("confusion_matrix.multiclass.%s" % normalize, tm.ConfusionMatrix(normalize=normalize, **multi), scores,
           classes)
    gather("confusion_matrix.multilabel.%s" % normalize, tm.ConfusionMatrix(normalize=normalize, **label), logits,
           labels)
for name, make in dict(auroc=tm.AUROC, average_precision=tm.AveragePrecision).items():
    for thresholds in (None, 21):
        kind = "binned" if thresholds else "exact"
        gather("%s.binary.%s" % (name, kind), make(task="binary", thresholds=thresholds), chances, bits)
        for average in AVERAGES[1:]:
            gather("%s.multiclass.%s.%s" % (name, average, kind),
                   make(average=average, thresholds=thresholds, **multi), scores, volume_classes[:, 0])
        for average in AVERAGES:
            gather("%s.multilabel.%s.%s" % (name, average, kind),
                   make(average=average, thresholds=thresholds, **label), logits, labels)
for norm in ("l1", "l2", "max"):
    gather("calibration_error.binary.%s" % norm, tm.CalibrationError(task="binary", norm=norm), chances, bits)
    gather("calibration_error.multiclass.%s" % norm, tm.CalibrationError(n_bins=10, norm=norm, **multi), scores,
           classes)
gather("mean_squared_error", tm.MeanSquaredError(), numbers, wanted)
gather("mean_squared_error.root", tm.MeanSquaredError(squared=False), numbers, wanted)
gather("mean_squared_error.columns", tm.MeanSquaredError(num_outputs=3), numbers, wanted)
gather("mean_absolute_error", tm.MeanAbsoluteError(), numbers, wanted)
gather("mean_absolute_error.columns", tm.MeanAbsoluteError(num_outputs=3), numbers, wanted)
for multioutput in ("uniform_average", "raw_values", "variance_weighted"):
    gather("r2_score.%s" % multioutput, tm.R2Score(multioutput=multioutput), numbers, wanted)
gather("r2_score.adjusted", tm.R2Score(adjusted=4), numbers, wanted)
for reduction in ("mean", "sum", "none"):
    gather("cosine_similarity.%s" % reduction, tm.CosineSimilarity(reduction=reduction), numbers, wanted)
gather("perplexity", Perplexity(ignore_index=-100), words, said)
numbers[3, 1] = float("nan")
show("holes", numbers)
gather("mean", tm.MeanMetric(), numbers)
gather("mean.weighted", tm.MeanMetric(), numbers, wanted.abs())
gather("sum", tm.SumMetric(), numbers)
gather("max", tm.MaxMetric(), numbers)
gather("min", tm.MinMetric(), numbers)
running = tm.RunningMean(window=4)
for i in range(9):
    running.update(wanted[i])
show("running_mean", running.compute())

SAID = ["the cat is on the mat", "there is a  cat on the mat\n", "it is a guide to action which ensures that the "
        "military always obeys the commands of the party", "", "a a a a a"]
MEANT = [["there is a cat on the mat", "a cat is on the mat"], ["the cat is there on the mat"],
         ["it is a guide to action that ensures that the military will forever heed party commands",
          "it is the guiding principle which guarantees the military forces always being under the command of the "
          "party"], ["nothing"], ["a a b", "a c"]]
for key, options in dict(plain={}, smooth=dict(smooth=True), two=dict(n_gram=2, weights=[0.25, 0.75])).items():
    bleu = BLEUScore(**options)
    bleu.update(SAID[:2], MEANT[:2])
    bleu.update(SAID[2:], MEANT[2:])
    show("bleu_score.%s" % key, bleu.compute())
