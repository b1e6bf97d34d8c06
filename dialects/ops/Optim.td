// Fused optimizer steps and gradient clipping over lists of tensors; what they write to is a mutated parameter.
include "OpBase.td"

class Optim<string mnemonicName> : Dlc_Op<mnemonicName> {
  let kind = "structured";
  let composite = 1;
  let pyModule = "optim.functional";
  let method = 0;
  let differentiable = 0;
  let dtypes = FloatTypes;
  let returns = (outs);
}
def Dlc_SgdStepOp : Optim<"sgd_step"> {
  let summary = "One step of stochastic gradient descent; without momentum, `momentum_buffers` is empty.";
  let params = (ins TListMut:$params, TList:$grads, TListMut:$momentum_buffers, Num<>:$lr, Num<"0">:$momentum, Num<"0">:$dampening,
                Num<"0">:$weight_decay, Bool<"False">:$nesterov, Bool<"False">:$maximize);
  let kwonly = "lr";
  let noSample = "tests of dlc.optim cover it";
}
def Dlc_AdamStepOp : Optim<"adam_step"> {
  let summary = "One step of Adam, or of AdamW if `decoupled`; `step` counts the steps taken before this one and is advanced.";
  let params = (ins TListMut:$params, TList:$grads, TListMut:$exp_avgs, TListMut:$exp_avg_sqs, TMut:$step, Num<>:$lr, Num<"0.9">:$beta1,
                Num<"0.999">:$beta2, Num<"1e-8">:$eps, Num<"0">:$weight_decay, Bool<"False">:$decoupled, Bool<"False">:$maximize);
  let kwonly = "lr";
  let noSample = "tests of dlc.optim cover it";
}
def Dlc_TotalNormOp : Optim<"total_norm"> {
  let summary = "The norm of all elements of all tensors.";
  let params = (ins TList:$tensors, Float<"2">:$norm_type);
  let returns = (outs O:$out);
  let samples = [Sample<"[S(3,4), S(5)]", "np.sqrt(sum(np.sum(t * t) for t in tensors))">];
}
def Dlc_ClipByNormOp : Optim<"clip_by_norm"> {
  let summary = "Scales all tensors so that a total norm above `max_norm` becomes it.";
  let params = (ins TListMut:$tensors, T:$total_norm, Num<>:$max_norm);
  let noSample = "tests of clip_grad_norm_ cover it";
}
