// What the protocol tells about a generation: metadata, configuration, statistics. Pure functions.
#ifndef MERGEKERNEL_SERVER_GRPC_MODEL_VIEWS_H_
#define MERGEKERNEL_SERVER_GRPC_MODEL_VIEWS_H_

#include "core/loader/generation.h"
#include "core/metrics/model_stats.h"
#include "proto/inference/grpc_service.pb.h"

namespace mk {

void FillMetadata(const Generation& generation, inference::ModelMetadataResponse* out);
void FillConfig(const Generation& generation, inference::ModelConfig* out);
void FillStatistics(const Generation& generation, const ModelStatsSnapshot& stats,
                    inference::ModelStatistics* out);

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_GRPC_MODEL_VIEWS_H_
