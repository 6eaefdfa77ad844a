/* data.h -- data sets, samplers, transforms and loaders. */
#ifndef TERN_DATA_H
#define TERN_DATA_H
#include <tern/data/dataset.h>
#include <tern/data/datasets.h>
#include <tern/data/images.h>
#include <tern/data/loader.h>
#include <tern/data/sampler.h>
#include <tern/data/transforms.h>
#endif
