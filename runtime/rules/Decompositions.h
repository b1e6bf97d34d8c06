// The rules of composites: what each is made of.
#pragma once
#include "runtime/rules/DecomposeAttention.h"
#include "runtime/rules/DecomposeBasic.h"
#include "runtime/rules/DecomposeNn.h"
#include "runtime/rules/DecomposeOptim.h"
#include "runtime/rules/DecomposeProducts.h"
