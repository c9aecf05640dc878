// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rules by which optimizers update weights, stated once: the names of their states and their
// constants. The operators of operators/optimizer_update have these constants as parameters; an
// optimizer (optimizer/optimizer.h) has them beside its learning rate and weight decay.
#include <algorithm>
#include <array>
#include <string_view>

#include "mxtrain/base/params.h"

namespace mxtrain::updates {

// An operator and the states of each weight, in their order.
struct Update {
  static constexpr int kMostStates = 3;
  std::string_view op;
  std::array<const char*, kMostStates> states = {};
  constexpr int num_states() const {
    return static_cast<int>(std::find(states.begin(), states.end(), nullptr) - states.begin());
  }
};

inline constexpr Update kUpdates[] = {{"sgd_update"},
                                      {"sgd_mom_update", {"mom"}},
                                      {"nag_mom_update", {"mom"}},
                                      {"adam_update", {"mean", "var"}},
                                      {"adamw_update", {"mean", "var"}},
                                      {"rmsprop_update", {"mean_square"}},
                                      {"rmsprop_mom_update", {"mean_square", "delta"}},
                                      {"rmspropalex_update", {"mean_square", "mean", "delta"}},
                                      {"adagrad_update", {"sum"}},
                                      {"adadelta_update", {"mean_square", "mean_delta"}},
                                      {"ftrl_update", {"z", "n"}},
                                      {"lamb_update", {"mean", "var"}},
                                      {"lars_update", {"mom"}},
                                      {"signsgd_update"},
                                      {"signum_update", {"mom"}},
                                      {"ftml_update", {"d", "v", "z"}},
                                      {"nadam_update", {"mean", "var"}},
                                      {"adamax_update", {"mean", "norm"}},
                                      {"lion_update", {"mom"}},
                                      {"dcasgd_update", {"mom"}},
                                      {"sgld_update"},
                                      {"group_adagrad_update", {"history"}}};

constexpr const Update& UpdateOf(std::string_view op) {
  return *std::find_if(std::begin(kUpdates), std::end(kUpdates),
                       [op](const Update& update) { return update.op == op; });
}

// The largest rate or decay: its product with a gradient of 1e8 is still a number of float32.
inline constexpr double kMostRate = 1e30;

template <typename P, typename B>
void AddDecay(Fields<P>& f, const char* name, double B::*decay, double fallback, const char* help) {
  f.Add(name, decay).Default(fallback).RangeBelow(0, 1).Help(help);
}
template <typename P, typename B>
void AddMomentum(Fields<P>& f, double B::*momentum) {
  AddDecay(f, "momentum", momentum, 0, "fraction of the previous update that is kept");
}
template <typename P, typename B>
void AddEpsilon(Fields<P>& f, double B::*epsilon, double fallback, const char* help) {
  f.Add("epsilon", epsilon).Default(fallback).RangeAbove(0).Help(help);
}
template <typename P, typename B>
void AddFactor(Fields<P>& f, const char* name, double B::*factor, double fallback,
               const char* help) {
  f.Add(name, factor).Default(fallback).Range(0).Help(help);
}

// The constants of the rules: members and their declaration in the parameters P.

struct NoConstants {
  template <typename P>
  static void DeclareConstants(Fields<P>&) {}
};

struct Momentum {
  double momentum = 0;
  template <typename P>
  static void DeclareConstants(Fields<P>& f) {
    AddMomentum(f, &Momentum::momentum);
  }
};

struct Moments {
  double beta1 = 0, beta2 = 0, epsilon = 0;
  template <typename P>
  static void DeclareMoments(Fields<P>& f, double decay, double added) {
    AddDecay(f, "beta1", &Moments::beta1, decay, "decay of the mean of gradients");
    AddDecay(f, "beta2", &Moments::beta2, 0.999, "decay of the mean of squared gradients");
    AddEpsilon(f, &Moments::epsilon, added, "added to the root of the mean square");
  }
};
struct Adam : Moments {
  template <typename P>
  static void DeclareConstants(Fields<P>& f) {
    DeclareMoments(f, 0.9, 1e-8);
  }
};
struct Lamb : Moments {
  template <typename P>
  static void DeclareConstants(Fields<P>& f) {
    DeclareMoments(f, 0.9, 1e-6);
  }
};
struct Ftml : Moments {
  template <typename P>
  static void DeclareConstants(Fields<P>& f) {
    DeclareMoments(f, 0.6, 1e-8);
  }
};
struct Nadam : Moments {
  double schedule_decay = 0;
  template <typename P>
  static void DeclareConstants(Fields<P>& f) {
    DeclareMoments(f, 0.9, 1e-8);
    AddFactor(f, "schedule_decay", &Nadam::schedule_decay, 0.004,
              "how fast the momentum approaches beta1, from about half of it");
  }
};

struct RmsProp {
  double rho = 0, momentum = 0, epsilon = 0;
  template <typename P>
  static void DeclareConstants(Fields<P>& f) {
    DeclareDecays(f);
    DeclareEpsilon(f);
  }
  template <typename P>
  static void DeclareDecays(Fields<P>& f) {
    AddDecay(f, "rho", &RmsProp::rho, 0.9, "decay of the mean of squared gradients");
    AddMomentum(f, &RmsProp::momentum);
  }
  template <typename P>
  static void DeclareEpsilon(Fields<P>& f) {
    AddEpsilon(f, &RmsProp::epsilon, 1e-8, "added to the mean square, under the root");
  }
};

struct Adagrad {
  double epsilon = 0;
  template <typename P>
  static void DeclareConstants(Fields<P>& f) {
    AddEpsilon(f, &Adagrad::epsilon, 1e-7, "added to the sum of squared gradients, under the root");
  }
};

struct GroupAdagrad {
  double epsilon = 0;
  template <typename P>
  static void DeclareConstants(Fields<P>& f) {
    AddEpsilon(f, &GroupAdagrad::epsilon, 1e-5,
               "added to the sum of mean squared gradients, under the root");
  }
};

struct Adadelta {
  double rho = 0, epsilon = 0;
  template <typename P>
  static void DeclareConstants(Fields<P>& f) {
    AddDecay(f, "rho", &Adadelta::rho, 0.9, "decay of the means of squared gradients and updates");
    AddEpsilon(f, &Adadelta::epsilon, 1e-5, "added to both means, under the roots");
  }
};

struct Ftrl {
  static constexpr bool kDividesByRate = true;  // and its states are sums of the quotients
  double lambda1 = 0, beta = 0;
  template <typename P>
  static void DeclareConstants(Fields<P>& f) {
    AddFactor(f, "lambda1", &Ftrl::lambda1, 0.01,
              "weight of the L1 norm; higher gives more zero weights");
    AddFactor(f, "beta", &Ftrl::beta, 1, "added to the root of the sum of squared gradients");
  }
};

struct Lars {
  double momentum = 0, eta = 0, epsilon = 0;
  template <typename P>
  static void DeclareConstants(Fields<P>& f) {
    AddMomentum(f, &Lars::momentum);
    AddFactor(f, "eta", &Lars::eta, 0.001,
              "trust coefficient: norm of an update relative to the weights, at a rate of 1");
    AddFactor(f, "epsilon", &Lars::epsilon, 0, "added to the divisor");
  }
};

struct Signum {
  double momentum = 0, wd_lh = 0;
  template <typename P>
  static void DeclareConstants(Fields<P>& f) {
    AddDecay(f, "momentum", &Signum::momentum, 0.9,
             "decay of the mean of gradients; 0: the sign of each gradient");
    f.Add("wd_lh", &Signum::wd_lh)
        .Default(0)
        .Range(0, kMostRate)
        .Help("weight decay outside of the sign, as that of adamw; needs a momentum above 0");
  }
};

struct Adamax {
  double beta1 = 0, beta2 = 0;
  template <typename P>
  static void DeclareConstants(Fields<P>& f) {
    AddDecay(f, "beta1", &Adamax::beta1, 0.9, "decay of the mean of gradients");
    AddDecay(f, "beta2", &Adamax::beta2, 0.999, "decay of the largest gradient");
  }
};

struct Lion {
  double beta1 = 0, beta2 = 0;
  template <typename P>
  static void DeclareConstants(Fields<P>& f) {
    AddDecay(f, "beta1", &Lion::beta1, 0.9, "share of the mean of gradients in an update");
    AddDecay(f, "beta2", &Lion::beta2, 0.99, "decay of the mean of gradients");
  }
};

struct Dcasgd {
  double momentum = 0, lambda = 0;
  template <typename P>
  static void DeclareConstants(Fields<P>& f) {
    AddMomentum(f, &Dcasgd::momentum);
    AddFactor(f, "lambda", &Dcasgd::lambda, 0.04,
              "factor of the compensation for the weight's last movement");
  }
};

}  // namespace mxtrain::updates
