/*
rl.c - reinforcement learning for language models, as a book that computes.

Three documents are followed here, chapter by chapter:

    D1  nanochat's reinforcement learning on GSM8K: rollouts, the tool, reward, advantage, loss, pass@k
    D2  where rewards come from: the verifier, and why a right answer can get 0
    D3  the overview: MDP, log-probabilities, KL, the three objectives, the recipes

A chapter is a comment that teaches, the few functions that compute it, and lesson_N(), which prints the
worked numbers: `./rl lesson 7`. Read from top to bottom; or open one chapter, run its lesson, change a line
and run it again.

     1  The language of reinforcement learning     7  Advantages: better than average
     2  Two warm-ups that really learn             8  The objective: reward minus beta KL
     3  The language model as policy               9  Losses
     4  Why it is a bandit                        10  The training loop
     5  Rewards: the verifier                     11  Evaluation
     6  Rollouts and the tool                     12  Recipes
     Appendix: when are two answers the same?         The claims ledger; the command line

The model, its gradients, sampling and files are in train_gpt.c, which is included here as a whole. Sizes:
B sequences, T tokens, T1 = T - 1, V vocabulary, K rollouts of one question. Arrays are row-major. A mask is 1
where the model itself chose the token. Log-probabilities, entropies and KL are in nats, the unit of natural
logarithms. V alone is the vocabulary, V(s) a value; D1, D2, D3 are the documents, D is the set of prompts.

    SFT   supervised fine-tuning                        PPO    proximal policy optimization
    RLHF  RL from human feedback: people rank answers   GRPO   group relative policy optimization
    RLVR  RL with verifiable rewards: a program checks  RLOO   REINFORCE, leave one out
    MDP   Markov decision process                       DAPO   a later form of GRPO
    GAE   generalized advantage estimation              DPO    direct preference optimization
    KL    Kullback-Leibler divergence                   GSPO   group sequence policy optimization
    GSM8K 8,500 word problems; MATH: 12,500 harder ones CISPO  clipped IS-weight policy optimization (IS:
                                                               importance sampling, the ratio of policies)
*/
#define TRAIN_GPT_NO_MAIN
#include "train_gpt.c"

/* ==========================================================================================================
 * CHAPTER 1. The language of reinforcement learning                                            (D3 section 1)
 *
 * Question: what exactly is being optimized when something "learns from reward"?
 *
 * A Markov decision process is five things (S, A, P, r, gamma):
 *
 *     S      the states: everything the next step may depend on
 *     A      the actions the agent can choose
 *     P      the dynamics p(s' | s, a): where an action leads. It belongs to the world, not to the agent
 *     r      the reward: one number per step, also given by the world
 *     gamma  the discount in [0, 1]: a reward t steps away counts gamma^t
 *
 * The agent owns one thing, its policy pi(a | s): for every state a distribution over the actions. Policy and
 * world together produce a trajectory
 *
 *     tau = (s_0, a_0, r_0, s_1, a_1, r_1, ..., s_T)
 *     p(tau) = rho_0(s_0) * product over t of  pi(a_t | s_t) * p(s_{t+1} | s_t, a_t)
 *
 * where rho_0 is the distribution of the first state. The return of a trajectory, and the objective, are
 *
 *     G = r_0 + gamma r_1 + gamma^2 r_2 + ...           J(pi) = E[ G ], the mean over trajectories of pi
 *
 * The mean is over trajectories that pi itself produces: change pi and the data changes too. That is what
 * "on-policy" means, and what supervised learning does not have.
 *
 * Three averages judge a single state or action. They belong to one policy and are wrong for the next one:
 *
 *     V(s)    = E[ G | start in s, follow pi ]                     how good is it to be here
 *     Q(s, a) = E[ G | start in s, do a once, then follow pi ]     how good is it to do a here
 *     A(s, a) = Q(s, a) - V(s)                                     is a better than what pi does on average
 *
 * They satisfy the Bellman equations, one linear equation per state:
 *
 *     Q(s, a) = sum over s' of p(s' | s, a) * ( r(s, a, s') + gamma V(s') )
 *     V(s)    = sum over a  of pi(a | s) * Q(s, a)          so that  sum over a of pi(a | s) A(s, a) = 0
 *
 * The lesson prints the last sum as pi.A. In a final state V = 0: nothing more is paid.
 *
 * The one fact on which every later chapter stands: log p(tau) is a SUM of log pi terms and log p terms. Only
 * the first kind contains theta, the parameters of the policy. So
 *
 *     d log p(tau) / d theta = sum over t of  d log pi(a_t | s_t) / d theta
 *
 * J is the sum over all tau of p(tau) G(tau), so dJ is the sum of G(tau) dp(tau). With d p = p d log p (the
 * "log-derivative trick") that is an average over trajectories again, which can be sampled without knowing
 * the world at all. This is REINFORCE (Williams 1992):
 *
 *     dJ / d theta = E[ G * d log p(tau) / d theta ]
 *
 * Trap: "no dynamics term" does not mean that the dynamics do not matter. They decide which trajectories
 * occur and what G is. They are only not needed as a formula.
 *
 * The world of this chapter is a chain of five states. Both ends are final; entering state 4 pays 1.
 *
 *     [0] <-> 1 <-> 2 <-> 3 <-> [4]       actions: left, right. One time in six (a die shows 6) the step
 *      end                    end, +1     slips and goes the other way.
 *
 * Solved by hand for gamma = 1. Let u be the probability that a step really goes right, d = 1 - u, x = d / u.
 * Bellman says V(s) = u V(s+1) + d V(s-1), which is the same as V(s+1) - V(s) = x (V(s) - V(s-1)): each gap
 * is x times the gap before it. With V(0) = 0 and V(4) = 1 (the pay for entering it; the code has V[4] = 0
 * and pays 1 for the step, which comes to the same) the gaps are g, gx, gx^2, gx^3 and add up to 1:
 *
 *     coin flip,       pi(right) = 1/2:  u = 1/2 * 5/6 + 1/2 * 1/6 = 1/2, x = 1:   V = 1/4,  1/2,   3/4
 *     mostly right,    pi(right) = 3/4:  u = 3/4 * 5/6 + 1/4 * 1/6 = 2/3, x = 1/2: V = 8/15, 12/15, 14/15
 *
 * The coin flip does not even notice the slipping: a random step turned around is a random step. With a
 * discount of 0.9 the coin flip's equations are V(1) = 0.45 V(2), V(3) = 0.5 + 0.45 V(2) and V(2) = 0.45
 * (V(1) + V(3)) = 0.405 V(2) + 0.225, so V(2) = 0.225 / 0.595 = 0.3782. (The pay for entering state 4 comes
 * with the step itself and is not discounted by that step.)
 * ======================================================================================================== */
enum { CHAIN_STATES = 5, CHAIN_GOAL = 4, CHAIN_LEFT = 0, CHAIN_RIGHT = 1, CHAIN_MAX_STEPS = 512 };

typedef struct { double right[CHAIN_STATES]; } ChainPolicy;       // pi(right | s); pi(left | s) is the rest

typedef struct {
    int T;                                                         // steps taken
    int state[CHAIN_MAX_STEPS + 1], action[CHAIN_MAX_STEPS];       // s_0 ... s_T and a_0 ... a_{T-1}
    double reward[CHAIN_MAX_STEPS];                                // r_0 ... r_{T-1}
} Trajectory;

// Discounted return G = sum over t of gamma^t rewards[t] (Sutton and Barto, eq. 3.8). rewards (T); T <= 0
// gives 0. Unit: that of the rewards. Worked from the back, G_t = r_t + gamma G_{t+1}: one multiplication per
// step, no power of gamma to compute, and gamma = 0 needs no special care for 0^0.
double discounted_return(const double* rewards, int T, double gamma) {
    double G = 0.0;
    for (int t = T - 1; t >= 0; t--) G = rewards[t] + gamma * G;
    return G;
}

static double sigmoid(double z) { return 1.0 / (1.0 + exp(-z)); }

static int chain_is_final(int s) { return s == 0 || s == CHAIN_GOAL; }

// pi(a | s)
static double chain_policy(const ChainPolicy* pi, int s, int a) {
    return a == CHAIN_RIGHT ? pi->right[s] : 1.0 - pi->right[s];
}

// p(next | s, a) from a state that is not final
static double chain_dynamics(double slip, int s, int a, int next) {
    int step = a == CHAIN_RIGHT ? 1 : -1;
    if (next == s + step) return 1.0 - slip;
    if (next == s - step) return slip;
    return 0.0;
}

// Documents write r(s, a). Here the pay depends on where the step ends, r(s, a, s'), and r(s, a) is its mean.
static double chain_reward(int next) { return next == CHAIN_GOAL ? 1.0 : 0.0; }

// V (5) and Q (5 x 2) of one policy: start from V = 0 and apply the Bellman equations again and again. Each
// sweep shrinks the error (by gamma, or here also because walks end), so it settles. Returns the sweeps used.
static int solve_chain(double* V, double (*Q)[2], const ChainPolicy* pi, double slip, double gamma) {
    int sweeps = 0;
    for (int s = 0; s < CHAIN_STATES; s++) V[s] = Q[s][0] = Q[s][1] = 0.0;        // final states keep V = 0
    for (double change = 1.0; change > 1e-15 && sweeps < 10000; sweeps++) {
        change = 0.0;
        for (int s = 1; s < CHAIN_GOAL; s++) {
            double v = 0.0;
            for (int a = 0; a < 2; a++) {
                Q[s][a] = 0.0;
                for (int next = s - 1; next <= s + 1; next += 2)
                    Q[s][a] += chain_dynamics(slip, s, a, next) * (chain_reward(next) + gamma * V[next]);
                v += chain_policy(pi, s, a) * Q[s][a];
            }
            change = fmax(change, fabs(v - V[s]));
            V[s] = v;
        }
    }
    return sweeps;
}

// One trajectory from `start` until a final state (or CHAIN_MAX_STEPS, which no walk here comes near).
static void sample_trajectory(Trajectory* tau, int start, const ChainPolicy* pi, double slip, Rng* rng) {
    int s = start;
    for (tau->T = 0, tau->state[0] = s; !chain_is_final(s) && tau->T < CHAIN_MAX_STEPS; ) {
        int a = random_uniform(rng) < pi->right[s] ? CHAIN_RIGHT : CHAIN_LEFT;
        int step = a == CHAIN_RIGHT ? 1 : -1;
        s += random_uniform(rng) < slip ? -step : step;
        tau->action[tau->T] = a;
        tau->reward[tau->T] = chain_reward(s);
        tau->state[++tau->T] = s;
    }
}

// log p(tau | s_0) in nats, returned as a sum and written as its two parts.
static double trajectory_logprob(double* log_policy, double* log_dynamics, const Trajectory* tau,
                                 const ChainPolicy* pi, double slip) {
    *log_policy = *log_dynamics = 0.0;
    for (int t = 0; t < tau->T; t++) {
        *log_policy += log(chain_policy(pi, tau->state[t], tau->action[t]));
        *log_dynamics += log(chain_dynamics(slip, tau->state[t], tau->action[t], tau->state[t + 1]));
    }
    return *log_policy + *log_dynamics;
}

// A policy with one parameter per state: pi(right | s) = sigmoid(theta_s).
static ChainPolicy chain_policy_from(const double* theta) {
    ChainPolicy pi;
    for (int s = 0; s < CHAIN_STATES; s++) pi.right[s] = sigmoid(theta[s]);
    return pi;
}

// grad (5) = d log p(tau) / d theta, called the score. For a sigmoid d log pi(a | s) / d theta_s is
// 1 - pi(right | s) when a is right and -pi(right | s) when a is left: what was done minus what was expected.
// The dynamics are not even an argument of this function.
static void score_trajectory(double* grad, const Trajectory* tau, const ChainPolicy* pi) {
    for (int s = 0; s < CHAIN_STATES; s++) grad[s] = 0.0;
    for (int t = 0; t < tau->T; t++)
        grad[tau->state[t]] += (tau->action[t] == CHAIN_RIGHT ? 1.0 : 0.0) - pi->right[tau->state[t]];
}

// The hand solution above as a formula: V(s) = (1 - x^s) / (1 - x^4), or s / 4 when x = 1. For gamma = 1
// only.
static double chain_value_by_hand(int s, double pi_right, double slip) {
    double u = pi_right * (1.0 - slip) + (1.0 - pi_right) * slip, x = (1.0 - u) / u;
    return fabs(x - 1.0) < 1e-12 ? s / 4.0 : (1.0 - pow(x, s)) / (1.0 - pow(x, 4));
}

static void print_chain_values(const char* name, double pi_right, double slip, Rng* rng) {
    enum { SAMPLES = 10000 };
    ChainPolicy pi = {{pi_right, pi_right, pi_right, pi_right, pi_right}};
    double V[CHAIN_STATES], Q[CHAIN_STATES][2];
    int sweeps = solve_chain(V, Q, &pi, slip, 1.0);
    printf("Policy \"%s\", pi(right) = %g, gamma = 1. Bellman takes %d sweeps;\n", name, pi_right, sweeps);
    printf("V sampled is the mean return of %d walks (standard error up to %.3f).\n", SAMPLES,
           0.5 / sqrt(SAMPLES));
    printf("   s   V hand V Bellman V sampled   Q left  Q right   A left  A right   pi.A\n");
    for (int s = 1; s < CHAIN_GOAL; s++) {
        double mean = 0.0;
        for (int i = 0; i < SAMPLES; i++) {
            Trajectory tau;
            sample_trajectory(&tau, s, &pi, slip, rng);
            mean += discounted_return(tau.reward, tau.T, 1.0) / SAMPLES;
        }
        double a_left = Q[s][CHAIN_LEFT] - V[s], a_right = Q[s][CHAIN_RIGHT] - V[s];
        double average = (1.0 - pi_right) * a_left + pi_right * a_right;
        printf("%4d %8.4f %9.4f %9.4f", s, chain_value_by_hand(s, pi_right, slip), V[s], mean);
        printf(" %8.4f %8.4f %8.4f %8.4f %6.3f\n", Q[s][CHAIN_LEFT], Q[s][CHAIN_RIGHT], a_left, a_right,
               fabs(average) < 1e-12 ? 0.0 : average);             // -1e-17 would be printed as -0.000
    }
    printf("\n");
}

static void print_discounting(double slip) {
    const double gammas[] = {1.0, 0.99, 0.9, 0.5};
    ChainPolicy coin = {{0.5, 0.5, 0.5, 0.5, 0.5}};
    double ones[1000];
    for (int t = 0; t < 1000; t++) ones[t] = 1.0;
    printf("Discounting. Left: the coin flip's values; the same reward further away counts\n");
    printf("less. Right: the return of a reward of 1 on every step. It stays below\n");
    printf("1/(1-gamma); only for gamma = 1 does it grow with the length of the task.\n");
    printf("   gamma    V(1)    V(2)    V(3)  | 10 steps  100 steps 1000 steps 1/(1-gamma)\n");
    for (int i = 0; i < 4; i++) {
        double V[CHAIN_STATES], Q[CHAIN_STATES][2], g = gammas[i];
        solve_chain(V, Q, &coin, slip, g);
        printf("%8.2f %7.4f %7.4f %7.4f  | %8.3f %10.3f %10.3f", g, V[1], V[2], V[3],
               discounted_return(ones, 10, g), discounted_return(ones, 100, g),
               discounted_return(ones, 1000, g));
        if (g < 1.0) printf(" %11.3f\n", 1.0 / (1.0 - g));
        else printf("        none\n");
    }
    printf("\n");
}

static void print_trajectory(const Trajectory* tau, const ChainPolicy* pi, double slip) {
    double log_policy, log_dynamics, total = trajectory_logprob(&log_policy, &log_dynamics, tau, pi, slip);
    printf("One trajectory of \"mostly right\", from state 2 (rho_0 = 1). Step 1 slips.\n");
    printf("   t   s_t   a_t    s_t+1   pi(a|s)  p(s'|s,a)   r_t\n");
    for (int t = 0; t < tau->T; t++) {
        int s = tau->state[t], a = tau->action[t], next = tau->state[t + 1];
        printf("%4d %5d   %-5s %6d  %8.4f  %9.4f %5.0f\n", t, s, a == CHAIN_RIGHT ? "right" : "left", next,
               chain_policy(pi, s, a), chain_dynamics(slip, s, a, next), tau->reward[t]);
    }
    printf("   product            %12.4f  %9.4f         p(tau) = %.6f\n", exp(log_policy), exp(log_dynamics),
           exp(total));
    printf("   sum of logs (nats) %12.4f  %9.4f     log p(tau) = %.4f\n", log_policy, log_dynamics,
           total);
    printf("   return: %.4f with gamma = 1, %.4f with gamma = 0.9 (0.9^3)\n\n",
           discounted_return(tau->reward, tau->T, 1.0), discounted_return(tau->reward, tau->T, 0.9));
}

static void print_gradient_without_dynamics(const Trajectory* tau, const double* theta) {
    const double slips[] = {1.0 / 6.0, 0.3, 0.01}, h = 1e-5;
    double a, b;
    printf("The gradient of log p(tau) in three worlds, by central differences (step %.0e).\n", h);
    printf("The world changes log p(tau), and not its gradient:\n");
    printf("    slip   log p(tau)   d/d theta_1   d/d theta_2   d/d theta_3    d/d slip\n");
    for (int i = 0; i < 3; i++) {
        ChainPolicy pi = chain_policy_from(theta);
        printf("%8.4f %12.4f", slips[i], trajectory_logprob(&a, &b, tau, &pi, slips[i]));
        for (int s = 1; s < CHAIN_GOAL; s++) {
            double up[CHAIN_STATES], down[CHAIN_STATES];
            for (int j = 0; j < CHAIN_STATES; j++) up[j] = down[j] = theta[j];
            up[s] += h;
            down[s] -= h;
            ChainPolicy pi_up = chain_policy_from(up), pi_down = chain_policy_from(down);
            printf(" %13.6f", (trajectory_logprob(&a, &b, tau, &pi_up, slips[i])
                               - trajectory_logprob(&a, &b, tau, &pi_down, slips[i])) / (2 * h));
        }
        printf(" %11.3f\n", (trajectory_logprob(&a, &b, tau, &pi, slips[i] + h)
                             - trajectory_logprob(&a, &b, tau, &pi, slips[i] - h)) / (2 * h));
    }
    ChainPolicy pi = chain_policy_from(theta);
    double score[CHAIN_STATES];
    score_trajectory(score, tau, &pi);
    printf(" formula             %14.6f %13.6f %13.6f\n\n", score[1], score[2], score[3]);
}

static void print_reinforce_identity(const double* theta, double slip, Rng* rng) {
    enum { SAMPLES = 40000 };
    const double h = 1e-5;
    ChainPolicy pi = chain_policy_from(theta);
    double sampled[CHAIN_STATES] = {0};
    for (int i = 0; i < SAMPLES; i++) {
        Trajectory tau;
        double score[CHAIN_STATES];
        sample_trajectory(&tau, 2, &pi, slip, rng);
        score_trajectory(score, &tau, &pi);
        for (int s = 0; s < CHAIN_STATES; s++)
            sampled[s] += discounted_return(tau.reward, tau.T, 1.0) * score[s] / SAMPLES;
    }
    printf("What that buys: the slope of J = V(2) from %d walks alone, the mean of\n", SAMPLES);
    printf("G * d log p(tau), against the slope of the solved Bellman equations.\n");
    printf("                         d/d theta_1   d/d theta_2   d/d theta_3\n");
    printf("   sampled, no dynamics %12.4f  %12.4f  %12.4f\n", sampled[1], sampled[2], sampled[3]);
    printf("   solved, dynamics     ");
    for (int s = 1; s < CHAIN_GOAL; s++) {
        double V[CHAIN_STATES], Q[CHAIN_STATES][2], moved[CHAIN_STATES], J[2];
        for (int side = 0; side < 2; side++) {
            for (int j = 0; j < CHAIN_STATES; j++) moved[j] = theta[j];
            moved[s] += side ? h : -h;
            ChainPolicy pi_moved = chain_policy_from(moved);
            solve_chain(V, Q, &pi_moved, slip, 1.0);
            J[side] = V[2];
        }
        printf("%12.4f  ", (J[1] - J[0]) / (2 * h));
    }
    printf("\n\n");
}

static void lesson_1(void) {
    const double slip = 1.0 / 6.0, logit = log(3.0);               // sigmoid(ln 3) = 3/4
    const double theta[CHAIN_STATES] = {logit, logit, logit, logit, logit};
    const Trajectory tau = {4, {2, 3, 2, 3, 4},
                            {CHAIN_RIGHT, CHAIN_RIGHT, CHAIN_RIGHT, CHAIN_RIGHT}, {0.0, 0.0, 0.0, 1.0}};
    ChainPolicy pi = chain_policy_from(theta);
    Rng rng = {1};
    printf("LESSON 1. The language of reinforcement learning (D3 section 1)\n\n");
    printf("   [0] <-> 1 <-> 2 <-> 3 <-> [4]    0 and 4 are final, entering 4 pays 1.\n");
    printf("   A step slips and goes the other way with probability %.4f (1/6).\n\n", slip);
    print_chain_values("coin flip", 0.5, slip, &rng);
    print_chain_values("mostly right", 0.75, slip, &rng);
    printf("The better policy makes every state better (V). Its advantage of \"right\" is\n");
    printf("smaller: the average it is measured against has risen. pi.A is always 0.\n\n");
    print_discounting(slip);
    print_trajectory(&tau, &pi, slip);
    print_gradient_without_dynamics(&tau, theta);
    print_reinforce_identity(theta, slip, &rng);
    printf("Take away: the policy gradient needs returns and log pi. It never needs P.\n");
}

/* ==========================================================================================================
 * CHAPTER 2. Two warm-ups: the thermostat and CartPole                                         (D3 section 2)
 *
 * Question: does the gradient of chapter 1 really teach anything? Two worlds in which something moves, one
 * algorithm, no library.
 *
 * REINFORCE, as run here. Play a group of K episodes, then move the parameters w of the policy uphill:
 *
 *     w += rate * mean over all steps t of   A_t * d log pi(a_t | s_t) / d w
 *
 * A_t says how much better the step turned out than expected. Both policies choose between two actions with a
 * sigmoid, pi(1 | s) = sigmoid(w . f(s)), where f(s) are a few numbers that describe the state. Then
 *
 *     d log pi(a | s) / d w = (a - pi(1 | s)) f(s)                 what was done minus what was expected
 *
 * The thermostat. The state is the room's temperature, the actions are heater off and on, the reward is 1
 * within 2 F of 70 F and 0 elsewhere. The hand-written policy of the document is
 *
 *     pi(on | s) = 1 if s < 70, else 0
 *
 * and the learned one is the same step made soft, pi(on | s) = sigmoid(w_0 + w_1 (s - 70) / 2). As w_1 goes
 * to minus infinity the two become equal. The room obeys Newton's law of cooling: per step it loses 3% of its
 * distance to the 40 F outside, and a heater that is on adds 2.4 F. Nobody tells the agent these numbers. At
 * 70 F that is -0.03 * 30 = -0.9 F per step with the heater off and -0.9 + 2.4 = +1.5 F with the heater on. A
 * step is five minutes, an episode one day of 288 steps.
 *
 * CartPole. A pole stands on a cart, hinged at its foot; every 0.02 s the agent pushes the cart to the left
 * or to the right. State (x, x_dot, theta, theta_dot): place and speed of the cart, angle of the pole (0 is
 * upright) and its speed. F = +-10 N is the push, g = 9.8 m/s^2 gravity, m_c = 1 kg the cart, m_p = 0.1 kg
 * the pole, l = 0.5 m half its length, dt = 0.02 s. Dynamics (Barto, Sutton and Anderson 1983, without
 * friction), with the mass-normalized intermediate value alpha, an acceleration:
 *
 *     alpha     = (F + m_p l theta_dot^2 sin(theta)) / (m_c + m_p)
 *     theta_acc = (g sin(theta) - cos(theta) alpha) / (l (4/3 - m_p cos^2(theta) / (m_c + m_p)))
 *     x_acc     = alpha - m_p l theta_acc cos(theta) / (m_c + m_p)
 *
 * and Euler's method, in which everything on the right is the OLD value (so x does not feel the force yet):
 *
 *     x += dt x_dot      x_dot += dt x_acc      theta += dt theta_dot      theta_dot += dt theta_acc
 *
 * The first step by hand, from rest, upright, pushed to the right (F = 10):
 *     alpha = 10 / 1.1 = 100/11 = 9.0909
 *     theta_acc = -(100/11) / (0.5 (4/3 - 0.1/1.1)) = -(100/11) / (41/66) = -600/41 = -14.634
 *     x_acc = 100/11 + 0.05 (600/41) / 1.1 = 9.0909 + 0.6652 = 400/41 = 9.7561
 *     x = 0, x_dot = 0.02 * 9.7561 = 0.19512, theta = 0, theta_dot = 0.02 * -14.634 = -0.29268
 * The push moves the foot of the pole to the right, so the pole tips to the left.
 *
 * Each step pays 1, also the one on which the pole falls (12 degrees) or the cart leaves (2.4 m), as in the
 * usual Gym version. An episode is cut off after 500 steps. The return is the length of the episode.
 *
 * Where does A_t come from? The thermostat takes the return from step t on, minus the mean of all of these.
 * For CartPole there are two answers, and they are the reason why this chapter belongs in this book:
 *
 *   (1) Group mean, what GRPO does to language models: the K episodes of a group start in the same state (the
 *       same "prompt"); every step of episode i gets the one number G_i - mean(G). Good steps of a short
 *       episode are punished together with the bad one; on average over many episodes that cancels.
 *   (2) A learned value function and generalized advantage estimation (GAE, below): every step gets its own
 *       number.
 *
 * D3 says that (1) works for language models and does not work on CartPole. `cartpole` runs both and prints
 * what happens. The theory to read it with: the group mean is a constant as far as one step is concerned, and
 * a baseline (what is subtracted from the return) that does not look at the action leaves the mean of the
 * gradient as it is; chapter 4 says why. (Strictly, a group mean that includes G_i itself shrinks the
 * gradient by (K-1)/K; chapter 7.) So (1) climbs the same hill. What a value
 * function can change is the noise, and with it the number of episodes needed. (The comparison is of two
 * whole recipes: GAE also discounts, and gives a step no credit for what happened before it.)
 *
 * Traps. Cutting off is not falling: after 500 steps the future is missing from the record, not empty. The
 * value function fills it in (see fill_advantages). V is fitted to the returns of the last policies while the
 * policy moves on, so it is always a little behind; D3 says the same of PPO. And "solved" for one seed says
 * little about the next: learning curves in reinforcement learning need several.
 * ======================================================================================================== */
enum { CURVE_COLUMNS = 64, CURVE_ROWS = 11 };

// Draw the n values of y between low and high as stars, at most 80 columns wide; the label names the x axis.
// When n is not CURVE_COLUMNS, every column shows the value that lies at its place.
static void draw_curve(const double* y, int n, double low, double high, const char* label) {
    for (int row = CURVE_ROWS - 1; row >= 0; row--) {
        printf("%8.4g |", low + (high - low) * row / (CURVE_ROWS - 1));
        int last = -1;
        char line[CURVE_COLUMNS + 1];
        for (int i = 0; i < CURVE_COLUMNS; i++) {
            double value = y[(size_t)i * (size_t)n / CURVE_COLUMNS];
            int at = (int)floor((value - low) / (high - low) * (CURVE_ROWS - 1) + 0.5);
            line[i] = at == row ? '*' : ' ';
            if (at == row) last = i;
        }
        line[last + 1] = '\0';
        printf("%s\n", line);
    }
    printf("         +");
    for (int i = 0; i < CURVE_COLUMNS; i++) putchar('-');
    printf("\n          %s\n", label);
}

// Euclidean scalar product of two short vectors.
static double inner_product(const double* a, const double* b, int n) {
    double sum = 0.0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

// ----------------------------------------------------------------------------------------------------------
// The thermostat

static const double thermostat_target = 70.0, thermostat_band = 2.0;                     // F
static const double thermostat_outside = 40.0;                                           // F
static const double thermostat_loss = 0.03, thermostat_heat = 2.4;                       // 1/step, F/step

enum { THERMOSTAT_STEPS = 288, THERMOSTAT_GROUP = 8 };

typedef struct {
    int updates;             // gradient steps
    double learning_rate;    // on the gradient after A has been divided by its root mean square
    double gamma;            // a switch matters for the next few steps only: 1 / (1 - 0.8) = 5 steps
} ThermostatOptions;

static const ThermostatOptions thermostat_defaults = {CURVE_COLUMNS, 3.0, 0.8};

// What one step changes, in F: loss to the outside, plus heat when the heater is on.
static double thermostat_rate(double temperature, int on) {
    return (on ? thermostat_heat : 0.0) - thermostat_loss * (temperature - thermostat_outside);
}

static int thermostat_in_band(double temperature) {
    return fabs(temperature - thermostat_target) <= thermostat_band;
}

static void thermostat_features(double* f, double temperature) {
    f[0] = 1.0;
    f[1] = (temperature - thermostat_target) / thermostat_band;
}

// One day under sigmoid(w . f), starting anywhere from 60 to 80 F. Writes the temperature each action saw,
// the action, and the reward of the temperature it led to (each 288). Returns the share of the day in the
// band.
static double simulate_day(double* temperature, int* action, double* reward, const double* w, Rng* rng) {
    double now = 60.0 + 20.0 * random_uniform(rng), share = 0.0;
    for (int t = 0; t < THERMOSTAT_STEPS; t++) {
        double f[2];
        thermostat_features(f, now);
        temperature[t] = now;
        action[t] = random_uniform(rng) < sigmoid(inner_product(w, f, 2));
        now += thermostat_rate(now, action[t]);
        reward[t] = thermostat_in_band(now);
        share += reward[t] / THERMOSTAT_STEPS;
    }
    return share;
}

// REINFORCE with the return from step t on, G_t (the "reward-to-go"), and one baseline, the mean of all G_t
// of the group. w (2) starts at 0, random switching. share (updates) receives the part of time in the band
// during each update's episodes.
static void train_thermostat(double* w, double* share, uint64_t seed, const ThermostatOptions* options) {
    enum { N = THERMOSTAT_GROUP * THERMOSTAT_STEPS };
    Rng rng = {seed};
    w[0] = w[1] = 0.0;
    for (int update = 0; update < options->updates; update++) {
        double temperature[N], reward[N], advantage[N], mean = 0.0, square = 0.0, gradient[2] = {0.0, 0.0};
        int action[N];
        share[update] = 0.0;
        for (int k = 0; k < THERMOSTAT_GROUP; k++) {
            int first = k * THERMOSTAT_STEPS;
            double G = 0.0;
            share[update] += simulate_day(temperature + first, action + first, reward + first, w, &rng)
                             / THERMOSTAT_GROUP;
            for (int t = THERMOSTAT_STEPS - 1; t >= 0; t--)        // G_t = r_t + gamma G_{t+1}
                advantage[first + t] = G = reward[first + t] + options->gamma * G;
        }
        for (int i = 0; i < N; i++) mean += advantage[i] / N;
        for (int i = 0; i < N; i++) square += (advantage[i] - mean) * (advantage[i] - mean) / N;
        for (int i = 0; i < N; i++) {
            double f[2];
            thermostat_features(f, temperature[i]);
            double surprise = action[i] - sigmoid(inner_product(w, f, 2));
            double A = (advantage[i] - mean) / (sqrt(square) + 1e-8);
            for (int j = 0; j < 2; j++) gradient[j] += A * surprise * f[j] / N;
        }
        for (int j = 0; j < 2; j++) w[j] += options->learning_rate * gradient[j];
    }
}

// Share of time in the band over `days` fresh days, and the last day's temperatures for a drawing.
static double test_thermostat(double* temperature, const double* w, int days, Rng* rng) {
    double reward[THERMOSTAT_STEPS], share = 0.0;
    int action[THERMOSTAT_STEPS];
    for (int day = 0; day < days; day++)
        share += simulate_day(temperature, action, reward, w, rng) / days;
    return share;
}

// ----------------------------------------------------------------------------------------------------------
// CartPole: the world

typedef struct { double x, x_dot, theta, theta_dot; } CartPole;    // m, m/s, rad, rad/s; theta 0 is upright

static const double gravity = 9.8, cart_mass = 1.0, pole_mass = 0.1, pole_half_length = 0.5;  // in SI units
static const double push_force = 10.0, time_step = 0.02;                                      // N, s
static const double x_limit = 2.4, theta_limit = 12.0 * M_PI / 180.0;                         // m, rad

enum { CARTPOLE_CAP = 500, CARTPOLE_GROUP = 8, CARTPOLE_MAX_UPDATES = 4096 };
enum { POLICY_SIZE = 5, VALUE_SIZE = 15 };                          // weights of the policy and of V

typedef struct { double alpha, theta_acc, x_acc; } CartPoleForces;

static CartPoleForces cartpole_forces(const CartPole* c, double force) {
    double mass = cart_mass + pole_mass, sine = sin(c->theta), cosine = cos(c->theta);
    CartPoleForces a;
    a.alpha = (force + pole_mass * pole_half_length * c->theta_dot * c->theta_dot * sine) / mass;
    a.theta_acc = (gravity * sine - cosine * a.alpha)
                  / (pole_half_length * (4.0 / 3.0 - pole_mass * cosine * cosine / mass));
    a.x_acc = a.alpha - pole_mass * pole_half_length * a.theta_acc * cosine / mass;
    return a;
}

// One step of 0.02 s; action 1 pushes right, 0 left. Returns 1 while the pole stands and the cart is on its
// track.
static int step_cartpole(CartPole* c, int action) {
    CartPoleForces a = cartpole_forces(c, action ? push_force : -push_force);
    c->x += time_step * c->x_dot;                   // explicit Euler: positions move with the old velocities
    c->theta += time_step * c->theta_dot;
    c->x_dot += time_step * a.x_acc;
    c->theta_dot += time_step * a.theta_acc;
    return fabs(c->x) <= x_limit && fabs(c->theta) <= theta_limit;
}

// Every episode starts nearly at rest: four numbers from -0.05 to 0.05, as in Gym.
static CartPole start_cartpole(Rng* rng) {
    CartPole c;
    c.x = 0.1 * random_uniform(rng) - 0.05;
    c.x_dot = 0.1 * random_uniform(rng) - 0.05;
    c.theta = 0.1 * random_uniform(rng) - 0.05;
    c.theta_dot = 0.1 * random_uniform(rng) - 0.05;
    return c;
}

// The state in units of its limits (a speed of 2 is a typical high one), so that one step size suits them
// all.
static void cartpole_features(double* f, const CartPole* c) {
    f[0] = 1.0;
    f[1] = c->x / x_limit;
    f[2] = c->x_dot / 2.0;
    f[3] = c->theta / theta_limit;
    f[4] = c->theta_dot / 2.0;
}

// ----------------------------------------------------------------------------------------------------------
// CartPole: the value function and GAE

// V(s) is a quadratic function of the state: the 15 products f_i f_j with i <= j, each with a weight v.
static double value_of(const double* v, const double* f) {
    double sum = 0.0;
    for (int i = 0, n = 0; i < POLICY_SIZE; i++)
        for (int j = i; j < POLICY_SIZE; j++) sum += v[n++] * f[i] * f[j];
    return sum;
}

// One step of gradient descent on (target - V)^2 / 2, whose gradient is -(target - V) f_i f_j.
static void value_update(double* v, const double* f, double target, double rate) {
    double error = target - value_of(v, f);
    for (int i = 0, n = 0; i < POLICY_SIZE; i++)
        for (int j = i; j < POLICY_SIZE; j++) v[n++] += rate * error * f[i] * f[j];
}

// Generalized advantage estimation (Schulman et al. 2016, eq. 16), one episode:
//
//     delta_t = r_t + gamma V(s_{t+1}) - V(s_t)         the surprise of one step
//     A_t     = delta_t + gamma lambda A_{t+1}          this surprise and, fading, the later ones
//
// adv, reward, value (T); adv may be the same array as reward. Unit: that of the rewards. The value after the
// last step is 0, the episode is over; when it was only cut off, add gamma V(s_T) to the last reward
// beforehand. T <= 0 writes nothing. lambda = 0 trusts V completely (one step of evidence, biased when V is
// wrong); lambda = 1 gives return minus V(s_t) (no bias, all the noise). Worked example, gamma = 1, lambda =
// 0.5, r = (0, 1), V = (0.25, 0.5): delta = (0.25, 0.5), A_1 = 0.5, A_0 = 0.25 + 0.5 * 0.5 = 0.5.
void advantages_gae(float* adv, const float* reward, const float* value, int T, float gamma, float lambda) {
    double next_advantage = 0.0, next_value = 0.0;
    for (int t = T - 1; t >= 0; t--) {
        double delta = reward[t] + gamma * next_value - value[t];
        next_advantage = delta + (double)gamma * lambda * next_advantage;
        next_value = value[t];
        adv[t] = (float)next_advantage;
    }
}

// ----------------------------------------------------------------------------------------------------------
// CartPole: learning

enum { BASELINE_GROUP_MEAN, BASELINE_VALUE, BASELINES };

static const char* const baseline_names[BASELINES] = {"group mean", "value + GAE"};

typedef struct {
    int baseline;            // where A_t comes from
    int budget;              // environment steps to learn from
    double learning_rate;    // on the gradient after A has been divided by its root mean square
    double value_rate;       // step size of the value function, one pass over each group
    double gamma, lambda;    // of the value function and GAE; the group mean uses the undiscounted return
} CartPoleOptions;

static const CartPoleOptions cartpole_defaults = {BASELINE_GROUP_MEAN, 200000, 30.0, 0.02, 0.99, 0.95};

// The episodes of one group, laid end to end: episode k is the steps first[k] ... first[k + 1] - 1.
typedef struct {
    int first[CARTPOLE_GROUP + 1];
    int action[CARTPOLE_GROUP * CARTPOLE_CAP];
    double features[CARTPOLE_GROUP * CARTPOLE_CAP][POLICY_SIZE];
    double advantage[CARTPOLE_GROUP * CARTPOLE_CAP];
    double last[CARTPOLE_GROUP][POLICY_SIZE];        // features of the state after the last step
    int cut_off[CARTPOLE_GROUP];                     // 1 = reached the cap standing, 0 = fell
} CartPoleGroup;

// One episode from `c` under sigmoid(w . f); returns its length. `group` may be NULL when nothing is to be
// kept.
static int run_cartpole_episode(CartPoleGroup* group, int k, CartPole c, const double* w, Rng* rng) {
    int standing = 1, length = 0;
    for (; standing && length < CARTPOLE_CAP; length++) {
        double f[POLICY_SIZE];
        cartpole_features(f, &c);
        int action = random_uniform(rng) < sigmoid(inner_product(w, f, POLICY_SIZE));
        if (group) {
            int i = group->first[k] + length;
            for (int j = 0; j < POLICY_SIZE; j++) group->features[i][j] = f[j];
            group->action[i] = action;
        }
        standing = step_cartpole(&c, action);
    }
    if (group) {
        group->first[k + 1] = group->first[k] + length;
        group->cut_off[k] = standing;
        cartpole_features(group->last[k], &c);
    }
    return length;
}

// K episodes from one common start. Returns their mean length.
static double collect_group(CartPoleGroup* group, const double* w, Rng* rng) {
    CartPole start = start_cartpole(rng);
    group->first[0] = 0;
    for (int k = 0; k < CARTPOLE_GROUP; k++) run_cartpole_episode(group, k, start, w, rng);
    return (double)group->first[CARTPOLE_GROUP] / CARTPOLE_GROUP;
}

// A_t of every step. Group mean: length of the episode minus the mean length. Value: GAE, episode by episode.
static void fill_advantages(CartPoleGroup* group, const double* v, const CartPoleOptions* options) {
    double mean_length = (double)group->first[CARTPOLE_GROUP] / CARTPOLE_GROUP;
    for (int k = 0; k < CARTPOLE_GROUP; k++) {
        int first = group->first[k], T = group->first[k + 1] - first;
        float reward[CARTPOLE_CAP], value[CARTPOLE_CAP], adv[CARTPOLE_CAP];
        for (int t = 0; t < T; t++) {
            reward[t] = 1.0f;
            value[t] = (float)value_of(v, group->features[first + t]);
            adv[t] = (float)(T - mean_length);
        }
        if (group->cut_off[k]) reward[T - 1] += (float)(options->gamma * value_of(v, group->last[k]));
        if (options->baseline == BASELINE_VALUE)
            advantages_gae(adv, reward, value, T, (float)options->gamma, (float)options->lambda);
        for (int t = 0; t < T; t++) group->advantage[first + t] = adv[t];
    }
}

// gradient (5) = mean over the group's steps of A_t d log pi(a_t | s_t) / d w, with A divided by its root
// mean square. Within a group that changes the length of the step only (between groups it changes their
// weights, as GRPO's division does), and it makes one learning rate mean the same for both rules. The root
// mean square counts as at least 1, the reward of one step: near the cap A is little more than the error of
// the value function, and blown up to full size it would undo what was learned.
static void cartpole_gradient(double* gradient, const CartPoleGroup* group, const double* w) {
    int N = group->first[CARTPOLE_GROUP];
    double square = 0.0;
    for (int i = 0; i < N; i++) square += group->advantage[i] * group->advantage[i] / N;
    for (int j = 0; j < POLICY_SIZE; j++) gradient[j] = 0.0;
    for (int i = 0; i < N; i++) {
        const double* f = group->features[i];
        double surprise = group->action[i] - sigmoid(inner_product(w, f, POLICY_SIZE));
        for (int j = 0; j < POLICY_SIZE; j++)
            gradient[j] += group->advantage[i] / fmax(sqrt(square), 1.0) * surprise * f[j] / N;
    }
}

// The value function walks through each episode from its end, towards the discounted return that followed.
static void fit_value(double* v, const CartPoleGroup* group, const CartPoleOptions* options) {
    for (int k = 0; k < CARTPOLE_GROUP; k++) {
        double G = group->cut_off[k] ? value_of(v, group->last[k]) : 0.0;
        for (int i = group->first[k + 1] - 1; i >= group->first[k]; i--) {
            G = 1.0 + options->gamma * G;
            value_update(v, group->features[i], G, options->value_rate);
        }
    }
}

typedef struct {
    double w[POLICY_SIZE], v[VALUE_SIZE];     // the policy; the value function (all 0 under the group mean)
    int updates;                              // gradient steps taken
    int solved;                               // environment steps used when a group first averaged 475 of 500
                                              // (the usual mark of "solved") or more; -1 if none did
    double length[CARTPOLE_MAX_UPDATES];      // mean episode length of each update's group
} CartPoleRun;

// Learn from nothing until the budget of environment steps is spent.
static void train_cartpole(CartPoleRun* run, uint64_t seed, const CartPoleOptions* options) {
    CartPoleGroup* group = allocate(1, sizeof *group);
    Rng rng = {seed};
    memset(run, 0, sizeof *run);
    run->solved = -1;
    for (int steps = 0; steps < options->budget && run->updates < CARTPOLE_MAX_UPDATES; run->updates++) {
        double gradient[POLICY_SIZE], mean_length = collect_group(group, run->w, &rng);
        fill_advantages(group, run->v, options);
        cartpole_gradient(gradient, group, run->w);
        for (int j = 0; j < POLICY_SIZE; j++) run->w[j] += options->learning_rate * gradient[j];
        if (options->baseline == BASELINE_VALUE) fit_value(run->v, group, options);
        steps += group->first[CARTPOLE_GROUP];
        if (run->solved < 0 && mean_length >= 0.95 * CARTPOLE_CAP) run->solved = steps;
        run->length[run->updates] = mean_length;
    }
    free(group);
}

// Mean length of `episodes` fresh episodes of the policy as it is, sampling included.
static double test_cartpole(const double* w, int episodes, Rng* rng) {
    double sum = 0.0;
    for (int i = 0; i < episodes; i++) sum += run_cartpole_episode(NULL, 0, start_cartpole(rng), w, rng);
    return sum / episodes;
}

// How noisy is one group's gradient? Freeze the policy w, let v settle on it, then look at many groups. Per
// rule: mean (5) of the gradient, and noise, the mean squared distance of one group's gradient from it.
static void measure_noise(double (*mean)[POLICY_SIZE], double* noise, const double* w, uint64_t seed) {
    enum { GROUPS = 400 };
    CartPoleGroup* group = allocate(1, sizeof *group);
    CartPoleOptions options = cartpole_defaults;
    double v[VALUE_SIZE] = {0}, square[BASELINES] = {0}, gradient[POLICY_SIZE];
    Rng rng = {seed};
    for (int b = 0; b < BASELINES; b++)
        for (int j = 0; j < POLICY_SIZE; j++) mean[b][j] = 0.0;
    for (int i = -50; i < GROUPS; i++) {                          // the first 50 groups only teach v
        collect_group(group, w, &rng);
        for (int b = 0; b < BASELINES && i >= 0; b++) {
            options.baseline = b;
            fill_advantages(group, v, &options);
            cartpole_gradient(gradient, group, w);
            for (int j = 0; j < POLICY_SIZE; j++) mean[b][j] += gradient[j] / GROUPS;
            square[b] += inner_product(gradient, gradient, POLICY_SIZE) / GROUPS;
        }
        fit_value(v, group, &options);
    }
    for (int b = 0; b < BASELINES; b++) noise[b] = square[b] - inner_product(mean[b], mean[b], POLICY_SIZE);
    free(group);
}

// ----------------------------------------------------------------------------------------------------------
// What the commands `thermostat` and `cartpole` and lesson 2 print

static void print_thermostat_rates(void) {
    printf("Thermostat. Outside %g F; a step loses %g%% of the distance to it, heat adds %g.\n",
           thermostat_outside, 100 * thermostat_loss, thermostat_heat);
    printf("   room    rate, heater off    rate, heater on    reward\n");
    for (int i = 0; i < 5; i++) {
        double room = thermostat_target + (i - 2) * 2.5;
        printf("%5.1f F  %11.3f F/step %12.3f F/step %8d\n", room, thermostat_rate(room, 0),
               thermostat_rate(room, 1), thermostat_in_band(room));
    }
    printf("\n");
}

static void run_thermostat(uint64_t seed) {
    double w[2], share[CURVE_COLUMNS], temperature[THERMOSTAT_STEPS];
    const double nothing[2] = {0.0, 0.0}, rule[2] = {0.0, -1000.0};   // -1000: in effect "on below 70"
    Rng rng = {seed + 1000};
    print_thermostat_rates();
    double before = test_thermostat(temperature, nothing, 200, &rng);
    printf("Before: pi(on) = 0.5, random switching. The first %d steps of a day, in F:\n", CURVE_COLUMNS);
    draw_curve(temperature, CURVE_COLUMNS, 60.0, 100.0, "steps of five minutes");
    train_thermostat(w, share, seed, &thermostat_defaults);
    printf("\nREINFORCE, %d updates of %d days each. Share of the time within 2 F of 70 F:\n",
           thermostat_defaults.updates, THERMOSTAT_GROUP);
    draw_curve(share, thermostat_defaults.updates, 0.0, 1.0, "updates");
    double after = test_thermostat(temperature, w, 200, &rng);
    printf("\nAfter: pi(on) = sigmoid(%.3f %+.3f (s - 70)/2). A fresh day:\n", w[0], w[1]);
    draw_curve(temperature, CURVE_COLUMNS, 60.0, 100.0, "steps of five minutes");
    printf("\nIn the band over 200 fresh days, warming up or cooling down included:\n");
    printf("   random switching     %6.2f%%\n   learned              %6.2f%%\n", 100 * before, 100 * after);
    printf("   on below 70 F        %6.2f%%\n", 100 * test_thermostat(temperature, rule, 200, &rng));
}

static int compare_ints(const void* a, const void* b) {
    int x = *(const int*)a, y = *(const int*)b;
    return (x > y) - (x < y);
}

// What one rule does at one learning rate over several seeds.
typedef struct { int solved, median_steps; double mean_end, worst_end; } SeedSummary;

enum { CARTPOLE_SEEDS = 9 };

static SeedSummary summarize_seeds(uint64_t seed, const CartPoleOptions* options) {
    SeedSummary summary = {0, 0, 0.0, CARTPOLE_CAP};
    int steps[CARTPOLE_SEEDS];
    for (int s = 0; s < CARTPOLE_SEEDS; s++) {
        CartPoleRun run;
        uint64_t own = 1000 * seed + (uint64_t)s;                  // no two calls share a seed
        Rng rng = {~own};
        train_cartpole(&run, own, options);
        double end = test_cartpole(run.w, 100, &rng);
        steps[s] = run.solved < 0 ? INT_MAX : run.solved;         // never sorts behind every number
        summary.solved += run.solved >= 0;
        summary.mean_end += end / CARTPOLE_SEEDS;
        summary.worst_end = fmin(summary.worst_end, end);
    }
    qsort(steps, CARTPOLE_SEEDS, sizeof steps[0], compare_ints);
    summary.median_steps = steps[CARTPOLE_SEEDS / 2];
    return summary;
}

// Both rules, several learning rates, several seeds, the same budget of environment steps.
static void compare_baselines(uint64_t seed) {
    enum { RATES = 4 };
    const double rates[RATES] = {3.0, 10.0, 30.0, 100.0};
    int solved[BASELINES] = {0}, fastest[BASELINES] = {INT_MAX, INT_MAX};
    double low = INFINITY, high = 0.0;                     // steps of the group mean over those of value
    printf("D3 says that a group mean does for language models and fails on CartPole. Both\n");
    printf("rules, %d seeds each, %d environment steps. Solved: a group of %d episodes\n", CARTPOLE_SEEDS,
           cartpole_defaults.budget, CARTPOLE_GROUP);
    printf("averages 475 or more; steps: median over the seeds; end: length of 100 episodes.\n");
    printf("    rate  A_t from       solved   steps to solve   end: mean   worst seed\n");
    for (int r = 0; r < RATES; r++) {
        int median[BASELINES];
        for (int b = 0; b < BASELINES; b++) {
            CartPoleOptions options = cartpole_defaults;
            options.baseline = b;
            options.learning_rate = rates[r];
            SeedSummary summary = summarize_seeds(seed, &options);
            solved[b] += summary.solved;
            median[b] = summary.median_steps;
            if (summary.median_steps < fastest[b]) fastest[b] = summary.median_steps;
            printf("%8g  %-12s %5d of %d ", rates[r], baseline_names[b], summary.solved, CARTPOLE_SEEDS);
            if (summary.median_steps < INT_MAX) printf("%16d", summary.median_steps);
            else printf("           never");
            printf(" %11.1f %12.1f\n", summary.mean_end, summary.worst_end);
        }
        if (median[0] == INT_MAX || median[1] == INT_MAX) continue;
        low = fmin(low, (double)median[0] / median[1]);
        high = fmax(high, (double)median[0] / median[1]);
    }
    printf("Solved in all: group mean %d of %d, value function %d of %d. At equal rates the\n", solved[0],
           RATES * CARTPOLE_SEEDS, solved[1], RATES * CARTPOLE_SEEDS);
    printf("group mean needs %.2f to %.2f times the steps; each at its fastest rate: %d\n", low, high,
           fastest[0]);
    printf("against %d. As a statement about what can be learned the claim %s;\n", fastest[1],
           2 * solved[0] < RATES * CARTPOLE_SEEDS ? "holds here" : "does not hold");
    printf("what the two rules differ in is the number of steps it takes.\n\n");
}

static void print_noise(uint64_t seed) {
    double mean[BASELINES][POLICY_SIZE], noise[BASELINES];
    CartPoleRun run;
    CartPoleOptions options = cartpole_defaults;
    options.budget = 3000;                                         // half-trained
    train_cartpole(&run, seed, &options);
    measure_noise(mean, noise, run.w, seed + 1);
    printf("Why: the gradients of 400 groups at one half-trained policy (mean length %.0f).\n",
           run.length[run.updates - 1]);
    printf("   A_t from         |mean|   noise (sd)   groups until noise = signal\n");
    for (int b = 0; b < BASELINES; b++) {
        double signal = inner_product(mean[b], mean[b], POLICY_SIZE);
        printf("   %-12s %10.4f %12.4f %14.2f\n", baseline_names[b], sqrt(signal), sqrt(noise[b]),
               noise[b] / signal);
    }
    double cosine =
        inner_product(mean[0], mean[1], POLICY_SIZE) /
        sqrt(inner_product(mean[0], mean[0], POLICY_SIZE) * inner_product(mean[1], mean[1], POLICY_SIZE));
    printf("   cosine between the two mean gradients: %.3f (1 = the same direction uphill)\n", cosine);
}

static void run_cartpole(uint64_t seed) {
    for (int b = 0; b < BASELINES; b++) {
        CartPoleRun run;
        CartPoleOptions options = cartpole_defaults;
        Rng rng = {seed + 1000};
        char label[80];
        options.baseline = b;
        train_cartpole(&run, seed, &options);
        printf("CartPole, REINFORCE with %s, seed %llu: mean length of an episode\n", baseline_names[b],
               (unsigned long long)seed);
        snprintf(label, sizeof label, "updates 1 to %d, %d environment steps in all", run.updates,
                 options.budget);
        draw_curve(run.length, run.updates, 0.0, CARTPOLE_CAP, label);
        if (run.solved >= 0) printf("   solved after %d environment steps", run.solved);
        else printf("   not solved within %d environment steps", options.budget);
        printf("; 100 new episodes: %.1f of %d steps\n", test_cartpole(run.w, 100, &rng), CARTPOLE_CAP);
        printf("   pi(right) = sigmoid(%.2f %+.2f x %+.2f x_dot %+.2f theta %+.2f theta_dot)\n\n", run.w[0],
               run.w[1] / x_limit, run.w[2] / 2.0, run.w[3] / theta_limit, run.w[4] / 2.0);
    }
    compare_baselines(seed);
    print_noise(seed);
}

static void print_cartpole_step(void) {
    CartPole c = {0.0, 0.0, 0.0, 0.0};
    printf("CartPole, the first steps from rest, pushed to the right (F = +10 N).\n");
    printf("   t      alpha  theta_acc      x_acc |        x    x_dot    theta  theta_dot\n");
    for (int t = 0; t < 4; t++) {
        CartPoleForces a = cartpole_forces(&c, push_force);
        printf("%4d %10.4f %10.4f %10.4f |", t, a.alpha, a.theta_acc, a.x_acc);
        printf(" %8.5f %8.5f %8.5f %10.5f\n", c.x, c.x_dot, c.theta, c.theta_dot);
        step_cartpole(&c, 1);
    }
    printf("   By hand for t = 0: alpha = 10/1.1, theta_acc = -600/41, x_acc = 400/41.\n");
    printf("   x moves one step late: Euler adds the old velocity.\n\n");
}

static void print_cartpole_without_learning(void) {
    CartPole c = {0.0, 0.0, 0.0, 0.0};
    const double nothing[POLICY_SIZE] = {0};
    Rng rng = {2};
    int length = 1;
    while (step_cartpole(&c, 1)) length++;
    printf("Length of an episode:  always right, from rest  %7d\n", length);
    printf("                       coin flip, mean of 1000  %7.1f\n", test_cartpole(nothing, 1000, &rng));
    for (int b = 0; b < BASELINES; b++) {
        CartPoleRun run;
        CartPoleOptions options = cartpole_defaults;
        options.baseline = b;
        options.budget = 100000;
        train_cartpole(&run, 1, &options);
        printf("    after %6d steps of REINFORCE, %-12s      %7.1f\n", options.budget, baseline_names[b],
               test_cartpole(run.w, 100, &rng));
    }
}

static void lesson_2(void) {
    double w[2], share[CURVE_COLUMNS], temperature[THERMOSTAT_STEPS];
    const double nothing[2] = {0.0, 0.0};
    Rng rng = {1};
    printf("LESSON 2. Two warm-ups: the thermostat and CartPole (D3 section 2)\n\n");
    print_thermostat_rates();
    train_thermostat(w, share, 1, &thermostat_defaults);
    printf("Share of the day in the band: random switching     %6.2f%%\n",
           100 * test_thermostat(temperature, nothing, 200, &rng));
    printf("                              after %d updates      %6.2f%%\n\n", thermostat_defaults.updates,
           100 * test_thermostat(temperature, w, 200, &rng));
    print_cartpole_step();
    print_cartpole_without_learning();
    printf("\nTake away: nobody told the policies the rates and formulas above. The learning\n");
    printf("curves are drawn by ./rl thermostat and ./rl cartpole.\n");
}

/* ==========================================================================================================
 * CHAPTER 3. The language model as policy                                                      (D3 section 3)
 *
 * Question: where are the states, actions and probabilities of chapter 1 in a language model?
 *
 *     state s_t        the prompt x and the tokens written so far, (x, y_<t)
 *     action a_t       the next token y_t, one of the V in the vocabulary (in this program mostly a byte)
 *     policy           the model. It gives a number z_i for every token i, its logit, and the softmax of
 *                      these is the policy: pi(i | s_t) = exp(z_i) / sum over j of exp(z_j)
 *     transition       append the token: s_{t+1} = (s_t, a_t). No chance in it, p(s_{t+1} | s_t, a_t) = 1
 *     termination      an end token, or the longest length allowed
 *     reward           0 on the way, one number at the end (chapter 5)
 *
 * With all dynamics factors equal to 1 the trajectory probability of chapter 1 loses them, and with the
 * prompt given it loses rho_0 too. What remains can be computed exactly, which classic reinforcement learning
 * can not:
 *
 *     pi(y | x) = product over t of pi(y_t | x, y_<t)
 *     log pi(y | x) = sum over t of log pi(y_t | x, y_<t)
 *
 * Always in logs: 4000 factors below 1 leave the range of float, and of double, long before the end.
 *
 * From logits z to the log-probability of one token i:
 *
 *     log pi(i) = z_i - log(sum over j of exp(z_j))
 *               = z_i - (m + log(sum over j of exp(z_j - m))),       m = the largest of the z_j
 *
 * Subtracting the largest logit m changes nothing on paper and everything in the machine: exp(z - m) is at
 * most 1 and at least one term IS 1, so nothing overflows and the logarithm never sees 0.
 *
 * The shift. The model reads the tokens 0 ... t and its logits at t are about token t + 1. So row t of the
 * logits is looked up ("gathered") at the id of token t + 1, and T tokens give T - 1 log-probabilities:
 *
 *     tokens        id_0   id_1   id_2   id_3
 *     logits        z_0    z_1    z_2    z_3        z_3 is about a token that does not exist yet
 *     logp          z_0[id_1]  z_1[id_2]  z_2[id_3]
 *     mask          mask_1     mask_2     mask_3    the mask of the token being predicted: shifted too
 *
 * The mask is 1 on tokens the model itself sampled and 0 on the prompt, on padding and on what a tool
 * inserted. It is written per token, so it must move by one exactly as the tokens do.
 *
 * Traps, both silent, both shown in the lesson. (1) No shift: z_t looked up at id_t asks how likely the token
 * is that was just read. (2) Mask not shifted: the first token of the answer drops out, and if anything
 * stands behind the answer (padding, the next turn) its first token comes in. Shapes fit in both cases,
 * nothing crashes, the loss even falls.
 * ======================================================================================================== */

// log of the sum of exp(z_j), j < V, in nats, without overflow. The sum runs in double: 128,000 float terms
// would lose digits. A NaN among the logits, or a +inf, gives NaN; -inf is a token that can not occur, and is
// fine.
static double log_sum_exp(const float* z, int V) {
    if (V <= 0) return -INFINITY;                                  // the log of an empty sum
    float largest = z[0];
    double sum = 0.0;
    for (int v = 1; v < V; v++) if (z[v] > largest) largest = z[v];
    for (int v = 0; v < V; v++) sum += exp((double)z[v] - largest);
    return largest + log(sum);
}

// Log-probability, in nats, of each token given the tokens before it: logp[b,t] = log pi(ids[b,t+1] |
// ids[b,0..t]). logp (B,T-1), logits (B,T,V), ids (B,T). The last row of logits is not used. T <= 1 writes
// nothing. An id outside 0 ... V-1 gives NaN at its place (a wrong number would be worse). D3 section 3,
// compute_log_probs.
void token_logprobs(float* logp, const float* logits, const int* ids, int B, int T, int V) {
    for (int b = 0; b < B; b++) {
        for (int t = 0; t + 1 < T; t++) {
            const float* z = logits + ((size_t)b * (size_t)T + (size_t)t) * (size_t)V;
            int next = ids[(size_t)b * (size_t)T + (size_t)t + 1];                 // the shift
            float* out = logp + (size_t)b * (size_t)(T - 1) + (size_t)t;
            *out = next < 0 || next >= V ? NAN : (float)(z[next] - log_sum_exp(z, V));
        }
    }
}

// Entropy H = -sum over v of p_v log p_v of each row, in nats: 0 when the model is certain, log V when it has
// no idea. entropy (N), logits (N,V), not shifted. With l_v = log p_v = z_v - log_sum_exp(z). N <= 0 writes
// nothing; p = 0 (a logit of -inf, or far below the largest) adds 0, as its limit does, not 0 * inf = NaN.
void token_entropy(float* entropy, const float* logits, int N, int V) {
    for (int n = 0; n < N; n++) {
        const float* z = logits + (size_t)n * (size_t)V;
        double lse = log_sum_exp(z, V), sum = 0.0;
        for (int v = 0; v < V; v++) {
            double l = z[v] - lse, p = exp(l);
            if (p != 0.0) sum -= p * l;
        }
        entropy[n] = (float)sum;
    }
}

// The mask moves with the tokens: out[b,t] = mask[b,t+1]. out (B,T-1), mask (B,T). T <= 1 writes nothing. out
// may be mask itself: reading is always ahead of writing.
void shift_mask(int* out, const int* mask, int B, int T) {
    for (int b = 0; b < B; b++)
        for (int t = 0; t + 1 < T; t++)
            out[(size_t)b * (size_t)(T - 1) + (size_t)t] = mask[(size_t)b * (size_t)T + (size_t)t + 1];
}

// log pi(y | x) of each sequence, in nats: the sum of logp where the mask is not 0. out (B), logp and mask
// (B,T1), both already shifted. An empty mask gives 0, the log of an empty product. Masked entries are
// skipped, not multiplied by 0, so that a NaN or an infinity under the mask stays there.
void sequence_logprobs(float* out, const float* logp, const int* mask, int B, int T1) {
    for (int b = 0; b < B; b++) {
        double sum = 0.0;
        for (int t = 0; t < T1; t++) {
            size_t i = (size_t)b * (size_t)T1 + (size_t)t;
            if (mask[i]) sum += logp[i];
        }
        out[b] = (float)sum;
    }
}

// Mean of x where the mask is not 0; 0 when the mask is empty (or n <= 0), never 0/0. x, mask (n). Summed in
// double.
double masked_mean(const float* x, const int* mask, int n) {
    double sum = 0.0;
    int count = 0;
    for (int i = 0; i < n; i++) if (mask[i]) { sum += x[i]; count++; }
    return count ? sum / count : 0.0;
}

static int count_masked(const int* mask, int n) {
    int count = 0;
    for (int i = 0; i < n; i++) count += mask[i] != 0;
    return count;
}

// The hand-made example: a vocabulary of five, the prompt "2 + 2 =", the completion "4 <end>", six tokens in
// all, and logits that are whole numbers. By hand, for the two tokens of the completion:
//     row 3, logits 1 0 0 3 0: log pi("4")     = 3 - log(e + e^3 + 3) = 3 - log 25.804 = 3 - 3.2505 = -0.2505
//     row 4, logits 0 0 0 0 2: log pi("<end>") = 2 - log(4 + e^2)     = 2 - log 11.389 = 2 - 2.4327 = -0.4327
//     log pi("4 <end>" | "2 + 2 =") = -0.2505 - 0.4327 = -0.6832, pi = exp(-0.6832) = 0.5050
enum { EXAMPLE_T = 6, EXAMPLE_V = 5, EXAMPLE_END = 4 };

static const char* const example_tokens[EXAMPLE_V] = {"2", "+", "=", "4", "<end>"};
static const int example_ids[EXAMPLE_T] = {0, 1, 0, 2, 3, 4};
static const int example_mask[EXAMPLE_T] = {0, 0, 0, 0, 1, 1};
static const float example_logits[EXAMPLE_T * EXAMPLE_V] = {
    0, 2, 1, 0, 0,    // has read: 2
    3, 0, 0, 1, 0,    //           2 +
    0, 1, 3, 0, 0,    //           2 + 2
    1, 0, 0, 3, 0,    //           2 + 2 =
    0, 0, 0, 0, 2,    //           2 + 2 = 4
    0, 0, 1, 0, 0,    //           2 + 2 = 4 <end>; about a token that never comes
};

// The text of the first n tokens, separated by spaces.
static void join_example_tokens(char* out, size_t cap, int n) {
    size_t used = 0;
    out[0] = '\0';
    for (int t = 0; t < n && used < cap; t++)
        used += (size_t)snprintf(out + used, cap - used, "%s%s", t ? " " : "",
                                 example_tokens[example_ids[t]]);
}

static void print_example_as_mdp(const float* logp) {
    int step = 0;                                                  // t counts the model's own actions, from 0
    printf("The completion \"4 <end>\" of the prompt \"2 + 2 =\" as an MDP:\n");
    printf("   t  state s_t        action a_t  pi(a|s)  next state s_t+1     p   r  done\n");
    for (int t = 0; t < EXAMPLE_T; t++) {
        char state[64], next[64];
        int done = example_ids[t] == EXAMPLE_END;
        if (!example_mask[t]) continue;
        join_example_tokens(state, sizeof state, t);
        join_example_tokens(next, sizeof next, t + 1);
        printf("%4d  %-16s %-10s %8.4f  %-19s %2d %3d  %s\n", step++, state, example_tokens[example_ids[t]],
               exp(logp[t - 1]), next, 1, done, done ? "yes" : "no");
    }
    printf("The transition appends the token: p is always 1. The reward is one number at the\n");
    printf("end (here 1, the answer is right). <end> terminates; so would a length limit.\n\n");
}

static void print_example_as_table(const float* logp, const int* shifted) {
    printf("From logits to token log-probs. Row t is about token t+1; [ ] is the entry that\n");
    printf("the shifted gather picks. log-softmax = logit - log-sum-exp (LSE), in nats.\n");
    printf("        | logits             |       | log-softmax                       |\n");
    printf(" t reads|");
    for (int v = 0; v < EXAMPLE_V; v++) printf("%4s", v == EXAMPLE_END ? "<e>" : example_tokens[v]);
    printf("|  LSE  |");
    for (int v = 0; v < EXAMPLE_V; v++) printf("%5s  ", v == EXAMPLE_END ? "<e>" : example_tokens[v]);
    printf("| next\n");
    for (int t = 0; t < EXAMPLE_T; t++) {
        const float* z = example_logits + t * EXAMPLE_V;
        printf("%2d %-5s|", t, example_tokens[example_ids[t]]);
        for (int v = 0; v < EXAMPLE_V; v++) printf("%4.0f", z[v]);
        printf("| %5.3f |", log_sum_exp(z, EXAMPLE_V));
        for (int v = 0; v < EXAMPLE_V; v++) {
            int picked = t + 1 < EXAMPLE_T && v == example_ids[t + 1];
            printf("%c%5.2f%c", picked ? '[' : ' ', z[v] - log_sum_exp(z, EXAMPLE_V), picked ? ']' : ' ');
        }
        printf("| %s\n", t + 1 < EXAMPLE_T ? example_tokens[example_ids[t + 1]] : "-");
    }
    printf("\nThe same by position. logp and the shifted mask have T-1 = %d entries:\n", EXAMPLE_T - 1);
    printf("   position t        ");
    for (int t = 0; t < EXAMPLE_T; t++) printf("%8d", t);
    printf("\n   token             ");
    for (int t = 0; t < EXAMPLE_T; t++) printf("%8s", example_tokens[example_ids[t]]);
    printf("\n   mask of the token ");
    for (int t = 0; t < EXAMPLE_T; t++) printf("%8d", example_mask[t]);
    printf("\n   token predicted   ");
    for (int t = 0; t + 1 < EXAMPLE_T; t++) printf("%8s", example_tokens[example_ids[t + 1]]);
    printf("\n   logp (nats)       ");
    for (int t = 0; t + 1 < EXAMPLE_T; t++) printf("%8.4f", logp[t]);
    printf("\n   shifted mask      ");
    for (int t = 0; t + 1 < EXAMPLE_T; t++) printf("%8d", shifted[t]);
    printf("\n\n");
}

static void print_mask_line(const char* name, const float* logp, const int* mask, int n) {
    float sum;
    sequence_logprobs(&sum, logp, mask, 1, n);
    printf("   %-35s %6d %11.4f %10.4f %10.4g\n", name, count_masked(mask, n), (double)sum,
           masked_mean(logp, mask, n), exp((double)sum));
}

// The right log pi(y|x) and the usual slips, made with the same functions. logits (T,V), ids (T), mask (T) as
// the rollout has it, not shifted. The first `prompt` tokens are the question.
static void print_mask_slips(const float* logits, const int* ids, const int* mask, int prompt, int T, int V) {
    float *logp = allocate((size_t)T, sizeof(float)), *late = allocate((size_t)T, sizeof(float));
    int *shifted = allocate((size_t)T, sizeof(int)), *every = allocate((size_t)T, sizeof(int)),
        *answer = allocate((size_t)T, sizeof(int)), *late_ids = allocate((size_t)T + 1, sizeof(int));
    for (int t = 0; t < T; t++) every[t] = 1, answer[t] = t >= prompt, late_ids[t + 1] = ids[t];
    token_logprobs(logp, logits, ids, 1, T, V);
    token_logprobs(late, logits, late_ids, 1, T + 1, V); // ids one place later: that undoes the shift
    shift_mask(shifted, mask, 1, T), shift_mask(answer, answer, 1, T);
    printf("   %-35s %6s %11s %10s %10s\n", "", "tokens", "sum, nats", "per token", "exp(sum)");
    print_mask_line("right: ids and mask shifted", logp, shifted, T - 1);
    print_mask_line("without the mask: prompt counted", logp, every, T - 1);
    print_mask_line("mask not shifted: the wrong tokens", logp, mask, T - 1);
    print_mask_line("ids not shifted: row t asks about t", late, mask, T);
    if (count_masked(answer, T - 1) > count_masked(shifted, T - 1))
        print_mask_line("forced tokens counted as chosen", logp, answer, T - 1);
    free(logp), free(late), free(shifted), free(every), free(answer), free(late_ids);
}

static void print_underflow(void) {
    float product_float = 1.0f;
    double product_double = 1.0;
    int tokens_float = 0, tokens_double = 0, length = 4000;
    for (; product_float > 0.0f; tokens_float++) product_float *= 0.5f;
    for (; product_double > 0.0; tokens_double++) product_double *= 0.5;
    printf("Why logs: tokens of probability 1/2, multiplied.\n");
    printf("   the product is exactly 0 from token %d on in float, %d in double\n", tokens_float,
           tokens_double);
    printf("   the sum of logs after %d tokens is an ordinary number: %.4f nats\n\n", length,
           length * log(0.5));
}

static void print_size_of_space(void) {
    const double vocabulary = 128000.0, length = 4000.0;
    double digits = length * log10(vocabulary), cartpole = 500.0 * log10(2.0);
    printf("How big is this MDP?                  language model            CartPole\n");
    printf("   actions per step               %18.0f %19d\n", vocabulary, 2);
    printf("   steps                          %18.0f %19d\n", length, 500);
    printf("   action sequences, power of 10  %18.1f %19.1f\n", digits, cartpole);
    printf("   the same in bits               %18.0f %19.0f\n", length * log2(vocabulary), 500.0);
    printf("   rewards per episode            %18s %19s\n", "1, at the end", "1 per step");
    printf("128000^4000 = 10^%.1f, a number of %.0f digits. That it works at all is due\n", digits,
           floor(digits) + 1);
    printf("to pretraining: nearly all probability lies on a tiny part of the sequences.\n\n");
}

static void lesson_3(void) {
    float logp[EXAMPLE_T - 1], entropy[EXAMPLE_T];
    int shifted[EXAMPLE_T - 1];
    token_logprobs(logp, example_logits, example_ids, 1, EXAMPLE_T, EXAMPLE_V);
    token_entropy(entropy, example_logits, EXAMPLE_T, EXAMPLE_V);
    shift_mask(shifted, example_mask, 1, EXAMPLE_T);
    printf("LESSON 3. The language model as policy (D3 section 3)\n\n");
    print_example_as_mdp(logp);
    print_example_as_table(logp, shifted);
    printf("Log-prob of the completion: right, and with the usual slips:\n\n");
    print_mask_slips(example_logits, example_ids, example_mask, 4, EXAMPLE_T, EXAMPLE_V);
    printf("\n   The first line is the one worked by hand in the chapter.\n\n");
    printf("Entropy: %.4f nats before \"4\", %.4f before \"<end>\"; at most log %d = %.4f.\n\n",
           entropy[3], entropy[4], EXAMPLE_V, log(EXAMPLE_V));
    print_underflow();
    print_size_of_space();
    printf("Take away: logits[t] is about token t+1, and the mask moves with it.\n");
}

/* ==========================================================================================================
 * CHAPTER 4. Why it is a bandit                                                                (D3 section 4)
 *
 * The question. Chapter 3 called every token an action. People who train language models say that the
 * whole answer is one action. Who is right, and does it matter for the gradient?
 *
 * The idea. Three things that make reinforcement learning hard are missing here.
 *   1. The reward is a function that we bring along: a learned judge r_phi(x, y) in RLHF, a checking
 *      program in RLVR (chapter 5). It is no longer a fixed property of the world.
 *   2. There is no world that answers back. x is drawn from a data set D, y is written, the episode is over,
 *      and y has no influence on the next x. Inside the answer the state does move, from "prompt + 5 tokens"
 *      to "prompt + 6 tokens", but we know that move exactly: it appends the token that was chosen. (The
 *      calculator of chapter 6 does answer, but always the same: still no chance in it.)
 *   3. The reward is one number for the whole answer, and it is not discounted: gamma = 1.
 * One situation, one choice, one payment: that is a slot machine with very many arms, a bandit. Because the
 * situation x differs from round to round it is called a contextual bandit. The objective shrinks to
 *
 *     J(theta) = E over x ~ D, y ~ pi_theta(.|x) of [ r(x, y) ]
 *
 * where E[...] is the average over everything random, weighted by its probability.
 *
 * The two views give one gradient. For any distribution, d pi(y) = pi(y) d log pi(y), so (grad is the vector
 * of the derivatives by all parameters)
 *
 *     grad J = sum_y grad pi(y|x) r(x,y) = E[ r(x,y) grad log pi(y|x) ]                     (answer view)
 *
 * and since log pi(y|x) = sum_t log pi(y_t | x, y_<t),
 *
 *     grad J = E[ sum_t  r(x,y)  grad log pi(y_t | x, y_<t) ]                                (token view)
 *
 * The token view writes the same r(x,y) next to every token. Three variants change what stands there:
 *   whole return      R = r_0 + r_1 + ...: rewards received before the token was written included
 *   reward-to-go      r_t + r_t+1 + ...: a token cannot change what was paid before it
 *   minus a baseline  R - b(s_t): better or worse than expected here? b must not look at the token itself
 * All have the same expectation, for one reason: sum_a pi(a|s) grad log pi(a|s) = grad sum_a pi(a|s)
 * = grad 1 = 0. So any factor that does not depend on the action a adds zero on average. What does
 * change is the variance, the mean square of the distance between one rollout's gradient and the average.
 *
 * How the one number is shared out over the tokens is called credit assignment (advantages: chapter 7):
 *   GRPO, RLOO, nanochat   every token of an answer gets the answer's advantage     no second model
 *   PPO with GAE           token t gets an estimate of Q(s_t,a_t) - V(s_t)          needs a value model
 *
 * How we make sure. A language model with three tokens and answers of three tokens has only 3^3 = 27 answers.
 * Over 27 answers an expectation is a sum that we can do completely: no sampling, no noise, no opinion. This
 * "toy" is the measuring instrument of chapters 8 and 9 too.
 *
 * Where D3 needs care.
 *   - 0.99^500 = exp(500 ln 0.99) = exp(-5.0252) = 0.0066, which is 0.66%; D3 cuts it to 0.6%. And from the
 *     first to the last of 500 tokens there are 499 steps, which gives 0.0066 again (0.00664).
 *   - "The two views are equivalent" is true of the expected gradient, not of its variance: a value function
 *     still lowers the noise. Below you see by how much.
 *   - Why gamma < 1 is a bias: common code gives token t the weight gamma^(steps to the end) and leaves out
 *     the factor gamma^t that the gradient of a discounted return has. With that factor and equal lengths,
 *     the direction is right again and only the size of the gradient changes. With unequal lengths,
 *     gamma < 1 pays for short answers.
 * ======================================================================================================== */

// ---- the toy: a language model small enough to write out ---------------------------------------------
//
// The tokens are the digits 0, 1, 2. The task, judged by a program: "write three digits whose sum is 3".
// The policy has one row of three logits per prefix: 1 empty prefix, 3 prefixes of one token, 9 of two,
// so 13 states and 39 parameters. Nothing is shared between prefixes, so this model can represent
// every distribution over the 27 answers.
//
// Numbering. Entry e = 3*state + token is one (state, action) pair, and the state that follows it is e + 1:
//     state 0 = ""   --token 0--> state 1 = "0"   --token 2--> state 6 = "02"   --token 1--> answer "021"
// The 27 entries 12..38 end an answer. Answer y is entry 12 + y, and y in base 3 is the answer's digits.
enum { TOY_V = 3, TOY_T = 3, TOY_STATES = 13, TOY_PARAMS = 39, TOY_ANSWERS = 27, TOY_LAST = 12 };

// Logits that look irregular but are the same everywhere: theta[i] = scale * sin(0.7*(i+1) + 1.3*k).
static void toy_fill(double* theta, int n, int k, double scale) {
    for (int i = 0; i < n; i++) theta[i] = scale * sin(0.7 * (i + 1) + 1.3 * k);
}

// Log-softmax of one row of n logits, in double precision: logp[j] = logits[j] - log sum_k exp(logits[k]).
static void toy_log_softmax(double* logp, const double* logits, int n) {
    double largest = logits[0], sum = 0.0;
    for (int j = 1; j < n; j++) largest = logits[j] > largest ? logits[j] : largest;
    for (int j = 0; j < n; j++) sum += exp(logits[j] - largest);
    for (int j = 0; j < n; j++) logp[j] = logits[j] - largest - log(sum);
}

// (39) logits -> (39) log-probabilities, log pi(token | prefix), one softmax per prefix.
static void toy_log_policy(double* logp, const double* theta) {
    for (int s = 0; s < TOY_STATES; s++) toy_log_softmax(logp + s * TOY_V, theta + s * TOY_V, TOY_V);
}

// The three entries that answer y passes through, found backwards from its last one.
static void toy_path(int* path, int y) {
    int entry = TOY_LAST + y;
    for (int t = TOY_T - 1; t >= 0; t--) {
        path[t] = entry;
        entry = entry / TOY_V - 1;   // the entry that led to this entry's state
    }
}

// Sum of the values that a table of 39 entries holds along answer y. For logp that is log pi(y).
static double toy_sum_along(const double* table, int y) {
    int path[TOY_T];
    toy_path(path, y);
    double sum = 0.0;
    for (int t = 0; t < TOY_T; t++) sum += table[path[t]];
    return sum;
}

// The verifier: 1 when the digits of answer y add up to 3, otherwise 0. Seven of the 27 answers pass.
static double toy_verify(int y) {
    int digit_sum = y / 9 + y / 3 % 3 + y % 3;
    return digit_sum == 3 ? 1.0 : 0.0;
}

// The reward as the token MDP sees it, one number per entry: 0 until the last token, then the verdict.
static void toy_rewards(double* reward) {
    for (int e = 0; e < TOY_PARAMS; e++) reward[e] = e < TOY_LAST ? 0.0 : toy_verify(e - TOY_LAST);
}

// grad += weight * grad log pi(token | prefix), for the pair with number `entry`. The field calls this
// gradient the score. For a softmax it is 1 - pi at the logit of the token taken, -pi at the row's others.
static void toy_add_score(double* grad, const double* logp, int entry, double weight) {
    int row = entry / TOY_V * TOY_V;
    for (int e = row; e < row + TOY_V; e++) grad[e] += weight * ((e == entry ? 1.0 : 0.0) - exp(logp[e]));
}

// The answer view: grad = sum_y weight[y] * grad log pi(y). With weight[y] = pi(y) r(y) it is grad J.
static void toy_answer_gradient(double* grad, const double* logp, const double* weight) {
    for (int e = 0; e < TOY_PARAMS; e++) grad[e] = 0.0;
    for (int y = 0; y < TOY_ANSWERS; y++) {
        int path[TOY_T];
        toy_path(path, y);
        for (int t = 0; t < TOY_T; t++) toy_add_score(grad, logp, path[t], weight[y]);
    }
}

// The MDP view, by Bellman's equations and without looking at a single whole answer:
//     Q(s,a) = r(s,a) + V(next s),   V(s) = sum_a pi(a|s) Q(s,a),   visit(next s) = visit(s) pi(a|s)
//     dJ/dlogit(s,a) = visit(s) pi(a|s) (Q(s,a) - V(s))                      (policy gradient theorem)
// Writes V (13) and the gradient (39), returns J = V(first state). reward has one number per entry.
static double toy_solve(double* value, double* grad, const double* logp, const double* reward) {
    double q[TOY_PARAMS], visit[TOY_STATES] = {1.0};
    for (int s = TOY_STATES - 1; s >= 0; s--) {      // children have larger numbers than their parent
        value[s] = 0.0;
        for (int e = s * TOY_V; e < (s + 1) * TOY_V; e++) {
            q[e] = reward[e] + (e < TOY_LAST ? value[e + 1] : 0.0);
            value[s] += exp(logp[e]) * q[e];
        }
    }
    for (int e = 0; e < TOY_PARAMS; e++) {
        int s = e / TOY_V;
        double reach = visit[s] * exp(logp[e]);
        if (e < TOY_LAST) visit[e + 1] = reach;
        grad[e] = reach * (q[e] - value[s]);
    }
    return value[0];
}

enum { CREDIT_WHOLE, CREDIT_TO_GO, CREDIT_OWN };   // credited: all rewards, those from here on, own

// The token view as a trainer would do it from one rollout, averaged over all 27 rollouts:
//     sample gradient = sum_t (G_t - baseline[s_t]) grad log pi(a_t|s_t),   G_t = sum_k gamma^(k-first) r_k
// with k from `first` to `last` as `credit` says. baseline: one number per state, or NULL for none.
// Writes the mean (39) and returns the variance of one rollout's gradient, summed over the 39 parameters.
static double toy_rollout_gradient(double* mean, const double* logp, const double* reward,
                                   const double* baseline, double gamma, int credit) {
    double mean_square = 0.0, square_mean = 0.0;
    for (int e = 0; e < TOY_PARAMS; e++) mean[e] = 0.0;
    for (int y = 0; y < TOY_ANSWERS; y++) {
        double sample[TOY_PARAMS] = {0}, p = exp(toy_sum_along(logp, y));
        int path[TOY_T];
        toy_path(path, y);
        for (int t = 0; t < TOY_T; t++) {
            int first = credit == CREDIT_WHOLE ? 0 : t, last = credit == CREDIT_OWN ? t : TOY_T - 1;
            double weight = 0.0;
            for (int k = last; k >= first; k--) weight = reward[path[k]] + gamma * weight;
            if (baseline) weight -= baseline[path[t] / TOY_V];
            toy_add_score(sample, logp, path[t], weight);
        }
        for (int e = 0; e < TOY_PARAMS; e++) {
            mean[e] += p * sample[e];
            mean_square += p * sample[e] * sample[e];
        }
    }
    for (int e = 0; e < TOY_PARAMS; e++) square_mean += mean[e] * mean[e];
    return mean_square - square_mean;
}

// The constant baseline with the least variance, from d(variance)/db = 0: b = E[R |S|^2] / E[|S|^2], where
// S = grad log pi(y). It is a mean of the returns in which answers with a large score count more.
static double toy_best_baseline(const double* logp, const double* reward) {
    double top = 0.0, bottom = 0.0;
    for (int y = 0; y < TOY_ANSWERS; y++) {
        double one[TOY_ANSWERS] = {0}, score[TOY_PARAMS], square = 0.0;
        one[y] = 1.0;
        toy_answer_gradient(score, logp, one);
        for (int e = 0; e < TOY_PARAMS; e++) square += score[e] * score[e];
        top += exp(toy_sum_along(logp, y)) * toy_sum_along(reward, y) * square;
        bottom += exp(toy_sum_along(logp, y)) * square;
    }
    return top / bottom;
}

static double toy_largest_difference(const double* a, const double* b, int n) {
    double largest = 0.0;
    for (int i = 0; i < n; i++) largest = fabs(a[i] - b[i]) > largest ? fabs(a[i] - b[i]) : largest;
    return largest;
}

// |a - b| / |b| in the usual length of a vector: 0 = the same gradient, 1 = as wrong as no gradient at all.
static double toy_relative_error(const double* a, const double* b, int n) {
    double difference = 0.0, length = 0.0;
    for (int i = 0; i < n; i++) { difference += (a[i] - b[i]) * (a[i] - b[i]); length += b[i] * b[i]; }
    return sqrt(difference / length);
}

// The angle between two vectors in degrees. A common factor does not change it.
static double toy_angle(const double* a, const double* b, int n) {
    double dot = 0.0, cross = 0.0;
    for (int i = 0; i < n; i++) {
        dot += a[i] * b[i];
        for (int j = 0; j < i; j++) cross += (a[i] * b[j] - a[j] * b[i]) * (a[i] * b[j] - a[j] * b[i]);
    }
    return atan2(sqrt(cross), dot) * 180.0 / M_PI;   // acos would lose the small angles to rounding
}

// A difference as text. Below `floor` only rounding is left, and its digits would depend on the compiler.
static const char* toy_difference_text(char* out, double difference, double floor) {   // out: 16 characters
    if (difference < floor) snprintf(out, 16, "< %.0e", floor);
    else snprintf(out, 16, "%.4g", difference);
    return out;
}

static const char* toy_text(char* out, int y) {      // answer 7 -> "021"; out has room for 4 characters
    snprintf(out, 4, "%c%c%c", '0' + y / 9 % 3, '0' + y / 3 % 3, '0' + y % 3);
    return out;
}

// ---- lesson 4 ------------------------------------------------------------------------------------------

static void lesson_4_discount(void) {
    const int steps[] = {1, 10, 100, 499, 500};
    printf("1. What gamma = 0.99 would do to the tokens of an answer\n\n");
    printf("   steps to the end      0.99^steps    = exp(steps * ln 0.99)\n");
    for (int i = 0; i < 5; i++)
        printf("   %16d %15.4g    = exp(%.4f)\n", steps[i], pow(0.99, steps[i]), steps[i] * log(0.99));
    printf("\n   In a 500-token answer the first token would get %.2f%% of the last token's\n"
           "   credit, although both belong to one answer with one reward. So gamma = 1.\n\n",
           100.0 * pow(0.99, 499));
}

static void lesson_4_toy(const double* logp, const double* reward) {
    double total = 0.0, passed = 0.0, value[TOY_STATES], grad[TOY_PARAMS];
    char text[4];
    printf("2. A language model with 27 answers: three digits from {0,1,2}; the reward is 1\n"
           "   if they add up to 3\n\n");
    printf("   answer   pi(1st)  pi(2nd)  pi(3rd)   product  reward\n");
    for (int y = 0; y < TOY_ANSWERS; y++) {
        int path[TOY_T];
        double p = exp(toy_sum_along(logp, y));
        toy_path(path, y);
        total += p;
        passed += p * toy_verify(y);
        if (toy_verify(y) > 0.0)
            printf("   %4s     %7.4f  %7.4f  %7.4f   %7.4f  %6.0f\n", toy_text(text, y), exp(logp[path[0]]),
                   exp(logp[path[1]]), exp(logp[path[2]]), p, toy_sum_along(reward, y));
    }
    printf("   (the other 20 answers: product %.4f together, reward 0)\n\n", total - passed);
    double J = toy_solve(value, grad, logp, reward);
    printf("   all 27 products add up to    %.12f\n", total);
    printf("   expected reward, 27 answers  %.12f   (answer view)\n", passed);
    printf("   V(empty prefix), Bellman     %.12f   (token view)\n\n", J);
    printf("   V of a prefix is the chance that the answer ends well, and nothing else.\n"
           "   While \"021\" is being written:\n\n"
           "   prefix     \"\"      \"0\"     \"02\"    then the reward of \"021\"\n"
           "   V      %6.4f   %6.4f   %6.4f    %6.4f\n\n", value[0], value[1], value[6], toy_verify(7));
}

static void lesson_4_line(const char* name, const double* grad, const double* exact, double variance) {
    char text[16];
    printf("   %-49s %10s", name,
           toy_difference_text(text, toy_largest_difference(grad, exact, TOY_PARAMS), 1e-12));
    if (variance >= 0.0) printf("  %9.4f\n", variance);
    else printf("  %9s\n", "-");
}

static void lesson_4_views(const double* logp, const double* reward) {
    double exact[TOY_PARAMS], grad[TOY_PARAMS], value[TOY_STATES], weight[TOY_ANSWERS];
    toy_solve(value, exact, logp, reward);
    printf("3. One gradient, written in several ways, each by exact summation\n\n");
    printf("   39 numbers each; \"off by\" is the largest difference from the first line;\n"
           "   \"variance\" is that of the gradient from one rollout, summed over the 39.\n\n");
    printf("   %-49s %10s  %9s\n", "", "off by", "variance");
    lesson_4_line("token MDP: visit * pi * (Q - V), Bellman", exact, exact, -1.0);
    for (int y = 0; y < TOY_ANSWERS; y++) weight[y] = exp(toy_sum_along(logp, y)) * toy_verify(y);
    toy_answer_gradient(grad, logp, weight);
    lesson_4_line("bandit: sum over 27 of pi(y) r(y) grad log pi(y)", grad, exact, -1.0);
    double variance = toy_rollout_gradient(grad, logp, reward, NULL, 1.0, CREDIT_WHOLE);
    lesson_4_line("tokens, whole return at each", grad, exact, variance);
    variance = toy_rollout_gradient(grad, logp, reward, NULL, 1.0, CREDIT_TO_GO);
    lesson_4_line("tokens, reward-to-go", grad, exact, variance);
    variance = toy_rollout_gradient(grad, logp, reward, value, 1.0, CREDIT_TO_GO);
    lesson_4_line("tokens, reward-to-go minus V(prefix)", grad, exact, variance);

    double paid[TOY_PARAMS];   // another reward, for which the reward-to-go differs from the whole return
    for (int e = 0; e < TOY_PARAMS; e++) paid[e] = e % TOY_V == 1 ? 1.0 / 3.0 : 0.0;
    toy_solve(value, exact, logp, paid);
    printf("\n   Another reward, paid token by token (1/3 at once for each digit 1):\n");
    variance = toy_rollout_gradient(grad, logp, paid, NULL, 1.0, CREDIT_WHOLE);
    lesson_4_line("tokens, whole return at each", grad, exact, variance);
    variance = toy_rollout_gradient(grad, logp, paid, NULL, 1.0, CREDIT_TO_GO);
    lesson_4_line("tokens, reward-to-go", grad, exact, variance);
    printf("\n   With one reward at the end, the reward-to-go IS the whole return: no line\n"
           "   changes. Where rewards come earlier, only the variance changes.\n\n");
}

static void lesson_4_baseline(const double* logp, const double* reward) {
    double exact[TOY_PARAMS], grad[TOY_PARAMS], value[TOY_STATES], baseline[TOY_STATES];
    double J = toy_solve(value, exact, logp, reward), none = 0.0;
    const char* names[] = {"none", "mean reward J", "best constant", "1 (far too high)", "V(prefix)"};
    char text[16];
    const double constants[] = {0.0, J, toy_best_baseline(logp, reward), 1.0, 0.0};
    printf("4. A baseline leaves the expected gradient alone and changes the variance\n\n");
    printf("   baseline            value  gradient off by   variance   of no baseline\n");
    for (int i = 0; i < 5; i++) {
        for (int s = 0; s < TOY_STATES; s++) baseline[s] = i == 4 ? value[s] : constants[i];
        double variance = toy_rollout_gradient(grad, logp, reward, baseline, 1.0, CREDIT_TO_GO);
        if (i == 0) none = variance;
        if (i == 4) printf("   %-16s %8s", names[i], "varies");
        else printf("   %-16s %8.4f", names[i], constants[i]);
        printf("  %15s  %9.4f  %14.1f%%\n",
               toy_difference_text(text, toy_largest_difference(grad, exact, TOY_PARAMS), 1e-12), variance,
               100.0 * variance / none);
    }
    printf("\n   The mean reward, which a group of rollouts estimates for free (chapter 7), is\n"
           "   close to the best constant. V(prefix) adds a little, but here we know V\n"
           "   exactly; a learned V costs a second model and is never exact.\n\n");
}

static void lesson_4_bias(const double* logp, const double* reward) {
    double exact[TOY_PARAMS], grad[TOY_PARAMS], value[TOY_STATES];
    const double gammas[] = {1.0, 0.99, 0.9, 0.5};
    char text[16];
    toy_solve(value, exact, logp, reward);
    printf("5. What discounting does to the expected gradient\n\n");
    printf("            gamma^(steps to the end)       gamma^(last step) for every\n");
    printf("            at each token                  token of the answer\n");
    printf("   gamma    relative error     angle       relative error     angle\n");
    for (int i = 0; i < 4; i++) {
        toy_rollout_gradient(grad, logp, reward, NULL, gammas[i], CREDIT_TO_GO);
        printf("   %-5g    %14s  %6.3f deg", gammas[i],
               toy_difference_text(text, toy_relative_error(grad, exact, TOY_PARAMS), 1e-12),
               toy_angle(grad, exact, TOY_PARAMS));
        toy_rollout_gradient(grad, logp, reward, NULL, gammas[i], CREDIT_WHOLE);
        printf("   %14s  %6.3f deg\n",
               toy_difference_text(text, toy_relative_error(grad, exact, TOY_PARAMS), 1e-12),
               toy_angle(grad, exact, TOY_PARAMS));
    }
    printf("\n   Left: what common code does. Early tokens get less, the direction turns.\n"
           "   Right: the true gradient of the discounted return. All 27 answers have three\n"
           "   tokens, so it is only shorter, by gamma^2. With gamma = 1 both are exact.\n");
}

static void lesson_4(void) {
    double theta[TOY_PARAMS], logp[TOY_PARAMS], reward[TOY_PARAMS];
    toy_fill(theta, TOY_PARAMS, 1, 1.0);
    toy_log_policy(logp, theta);
    toy_rewards(reward);
    printf("LESSON 4. Why it is a bandit (D3 section 4)\n\n");
    lesson_4_discount();
    lesson_4_toy(logp, reward);
    lesson_4_views(logp, reward);
    lesson_4_baseline(logp, reward);
    lesson_4_bias(logp, reward);
}

/* ==========================================================================================================
 * CHAPTER 5. Rewards: the verifier                                         (D2 sections 1 to 5; D1, "reward")
 *
 * The question. A policy has answered. Who says how good the answer is?
 *
 *   RLHF (D2 section 2)  People rank answers, a reward model r(x, y) is fitted to the ranking, and RL
 *                        climbs r. Works for anything that people can compare. But the judge is a
 *                        second network, often as big as the first, and only a proxy: a policy that
 *                        is pushed hard finds its holes.
 *   RLVR (D2 section 3)  A program compares the final answer with the known one:
 *                            r(x, y) = 1 if they are the same mathematics, else 0.
 *                        No second network, no annotators, the same verdict every time. The price:
 *                        it only works where an answer can be checked.
 *
 * This chapter is that program. It takes two steps.
 *
 *   1. Extract.  Where in the response is the answer? In the last \boxed{...} (MATH), or behind the
 *      last #### (GSM8K). STRICT means that nothing outside of the format counts. So one number asks
 *      for two things at once, be right and write it where I look, and no second rule is needed for
 *      the format (D2 section 4; rollout r3 of the lesson is right, and gets 0).
 *   2. Compare.  Is it the same answer? \frac{1}{2}, 1/2, .5 and 0.50 are one number. A judge that
 *      compares strings punishes right answers, and the policy learns spelling instead of mathematics.
 *      On 500 typed answers to MATH-500 of which nearly all are right, comparing strings accepts 354;
 *      answers_equal below accepts 493, and the other 7 are damaged (1\frac{4}{5} typed as 14/5).
 *
 * Extracting and the rewards are short and follow here. Comparing is one function, answers_equal. Its inside
 * is the appendix behind chapter 12, to be read when the loop is understood. It has two ideas, in this order:
 *
 *   NORMALIZE  Rewrite the many spellings of LaTeX, Unicode and plain typing into one, by a table.
 *   EVALUATE   Two expressions are equal when they have equal VALUES at a few fixed pseudo-random
 *              points. (x+1)^2 and x^2+2x+1 share no spelling, but at x = 1.618 both are 6.854.
 *
 * Why evaluating is sound. If two polynomials differ, then their difference is a polynomial that isn't zero.
 * It has at most as many zeros as its degree (with several variables: a set of measure 0), and a point that
 * was chosen without looking at it is almost surely none of them. The same holds for + - * / powers, roots,
 * exp, log, sin and cos wherever they are smooth. Numbers made of + - * / alone are kept as exact fractions:
 * 1/3 is not 0.333333. Where it is NOT sound:
 *   - The points are always the same: who knows them can build a wrong expression that fits.
 *   - Values that are closer than rounding can tell look equal: 2^100 and 2^100 + 1. (Each value carries a
 *     bound on its rounding error, so we know how close that is.)
 *   - Variables stand for real numbers of both signs. sqrt(x^2) is |x|, not x, and what holds for whole
 *     numbers only, such as (-1)^(2n) = 1, is not seen.
 *   - An equation is compared up to a constant factor (2x = 10 is x = 5), not by its solutions.
 *
 * Traps. A false "equal" is worse than a false "different". RL searches for whatever is rewarded, so a
 * hole in the judge will be found and widened, while a right answer that is missed costs one sample. When
 * in doubt: different. D3 section 6 calls the 0/1 reward one that can't be cheated. More exactly: it is as
 * hard to cheat as its verifier is correct. "The same verdict every time" is not yet "the right verdict
 * every time", and a lucky guess (D1) is paid like an insight.
 */

// Written out in the appendix behind chapter 12: the inside of the comparison, and what the lesson shows of
// it.
int answers_equal(const char* a, const char* b);                       // the same mathematics? 1 or 0
static double solve_linear(const char* left, const char* right);
static void print_comparisons(void);

enum { MAX_ANSWER = 1000,      // bytes; a longer answer is equal only to itself
       MAX_NORMALIZED = 2048,  // room for a rewritten answer
       MAX_NESTING = 80,       // levels of the parser, two for each parenthesis
       MAX_ITEMS = 32,         // elements of a list or set
       EVALUATION_POINTS = 32 };

/* ---- 5.1 Extract ---- */

static int is_digit(char c) { return c >= '0' && c <= '9'; }
static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static int is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static int lower_case(int c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; }

// Copies [start, end) without the spaces around it to out. 1 = copied; 0 = it doesn't fit, and out is "":
// half an answer might be judged right, so nothing is ever cut off.
static int copy_trimmed(char* out, int cap, const char* start, const char* end) {
    while (start < end && is_space(*start)) start++;
    while (end > start && is_space(end[-1])) end--;
    if (cap > 0) out[0] = 0;
    if (end - start >= cap) return 0;
    memcpy(out, start, (size_t)(end - start));
    out[end - start] = 0;
    return 1;
}

// The closing brace of the group that opens at *open; NULL = it doesn't close before limit. \{ and \} are
// printed braces, they group nothing.
static const char* find_closing_brace(const char* open, const char* limit) {
    int depth = 0;
    for (const char* p = open; p < limit; p++) {
        if (*p == '\\') p++;
        else if (*p == '{') depth++;
        else if (*p == '}' && --depth == 0) return p;
    }
    return NULL;
}

// The content of the last complete \boxed{...} in text, without the spaces around it; braces may nest. out
// has cap bytes and is "" when nothing is found. 1 = found (an empty box counts); 0 = no box, it never
// closes, or its content doesn't fit. D2 section 4.
int extract_boxed(const char* text, char* out, int cap) {
    if (cap > 0) out[0] = 0;
    const char* limit = text + strlen(text);
    for (const char* p = limit; p-- > text;) {
        if (*p != '\\' || strncmp(p, "\\boxed", 6)) continue;
        const char* open = p + 6;
        while (open < limit && is_space(*open)) open++;
        if (open >= limit || *open != '{') continue;
        const char* close = find_closing_brace(open, limit);
        if (close) return copy_trimmed(out, cap, open + 1, close);
        limit = p;  // this box swallows all that follows, so an earlier one closes before it (or never)
    }
    return 0;
}

// Does the comma at p separate thousands? text is where its number may begin at the earliest. 1,000 and
// 12,345,678 do; 1,2 and 1,0000 and 1234,567 don't.
static int is_thousands_comma(const char* text, const char* p) {
    int before = 0;
    while (p - before > text && is_digit(p[-1 - before])) before++;
    if (before < 1 || before > 3) return 0;
    return is_digit(p[1]) && is_digit(p[2]) && is_digit(p[3]) && !is_digit(p[4]);
}

// Reads a number as people write it at *text, [sign] [$] 1,234.50 or 3/4, and writes it to out as a machine
// reads it, -1234.50. 1 = read, and *text is moved behind it; 0 = no number, or one with odd commas.
static int read_number(const char** text, char* out, int cap) {
    const char* p = *text;
    int n = 0, digits = 0, sign = 0, dollar = 0, dot = 0, slash = 0;
    if (cap < 3) return 0;
    for (;; p++) {  // what may stand in front of the digits
        int minus = !strncmp(p, "\xe2\x88\x92", 3);  // the Unicode minus, three bytes of UTF-8
        if (!sign && (minus || *p == '-' || *p == '+')) {
            if (*p != '+') out[n++] = '-';
            if (minus) p += 2;
            sign = 1;
        } else if (!dollar && *p == '$') dollar = 1;
        else if (*p != ' ' && !(*p == '\\' && p[1] == '$')) break;
    }
    for (; n < cap; p++) {
        if (is_digit(*p)) { out[n++] = *p; digits++; }
        else if (*p == '.' && !dot && !slash && is_digit(p[1])) { out[n++] = *p; dot = 1; }
        else if (*p == '/' && !dot && !slash && digits && is_digit(p[1])) { out[n++] = *p; slash = 1; }
        else if (*p == ',' && !dot && !slash && digits && is_digit(p[1])) {
            if (!is_thousands_comma(*text, p)) return 0;  // 1,000 is a number, 1,00 is a riddle
        } else break;
    }
    if (n >= cap || !digits) return 0;
    out[n] = 0;
    *text = p;
    return 1;
}

// Does a number that was read up to p go on there, so that it was only the beginning of one? Yes before a
// further number (2 2/3, 1.5.2, 1, 2), an operator (6*7, 10^3, 1e3, 5!, 2\pi, 5x) or a number word (2
// thousand, 3 and a half). Other words may follow, and a percent sign may.
static int number_goes_on(const char* p) {
    static const char* const words[] = {"and", "or", "to", "a", "an", "by", "x", "times", "plus", "minus",
        "over", "point", "hundred", "thousand", "million", "billion", "trillion", "dozen", "half", "halve",
        "third", "quarter", "fourth", "fifth", "sixth", "eighth", "tenth", "pi", "sqrt"};
    enum { JOINING = 12, WORDS = sizeof words / sizeof *words };  // the first twelve only join two numbers
    // raised 2 3 1, the fractions, a dot, times, division, pi, the other raised digits, minus, root
    static const char* const symbols[] = {"\xc2\xb2", "\xc2\xb3", "\xc2\xb9", "\xc2\xbc", "\xc2\xbd",
        "\xc2\xbe", "\xc2\xb7", "\xc3\x97", "\xc3\xb7", "\xcf\x80", "\xe2\x81", "\xe2\x88\x92",
        "\xe2\x88\x9a"};
    if (*p == '!' || (is_letter(*p) && !is_letter(p[1]))) return 1;
    for (;;) {
        int operators = 0, word = 0;
        for (; *p && strchr(" \t*,;:%\"'()[]{}$+-/^=<>~|", *p); p++)
            operators |= strchr("*+-/^=<>~|", *p) != NULL;
        if (is_digit(*p) || (*p == '.' && is_digit(p[1]))) return 1;
        for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
            if (!strncmp(p, symbols[i], strlen(symbols[i]))) return 1;
        if (!strncmp(p, "\\text", 5) || !strncmp(p, "\\mbox", 5)) return 0;
        if (*p == '\\') return !strchr("%$,;!)]} ", p[1]);
        size_t n = 0;
        while (is_letter(p[n])) n++;
        for (; word < WORDS; word++) {
            size_t m = 0;  // the word or its plural, in small letters or capitals
            while (words[word][m] && lower_case(p[m]) == words[word][m]) m++;
            if (!words[word][m] && (n == m || (n == m + 1 && n > 4 && p[m] == 's'))) break;
        }
        if (n == 0 || word == WORDS) return n == 1 && operators;
        if (word >= JOINING) return 1;
        p += n;
    }
}

// The number behind the last #### of text, on the same line, without currency sign and thousands
// separators: "#### **$1,080.50** in all" gives "1080.50". Words may follow, but nothing that continues
// the number. out and cap as above. 1 = found; 0 = no ####, or no whole number behind the last one, even
// if there was one behind an earlier one. D1 says the last ####; the code that D1 describes searches for
// the first. They differ when a response corrects itself.
int extract_hash_answer(const char* text, char* out, int cap) {
    const char* mark = NULL;
    if (cap > 0) out[0] = 0;
    for (const char* p = strstr(text, "####"); p; p = strstr(p + 1, "####")) mark = p;
    if (!mark) return 0;
    mark += 4;
    while (*mark == ' ' || *mark == '\t' || *mark == '*') mark++;  // ** is bold in Markdown
    if (read_number(&mark, out, cap) && !number_goes_on(mark)) return 1;
    if (cap > 0) out[0] = 0;
    return 0;
}

// The answer that a data set calls right, as every reward and command reads it: what stands behind the
// last #### of its line, a number or an expression; else in the last \boxed{}; else the bare answer. 1 =
// found; 0 = there is none, or it doesn't fit: nothing can earn such a truth, and out is "".
static int extract_truth(char* out, int cap, const char* answer) {
    const char *mark = NULL, *end;
    for (const char* p = strstr(answer, "####"); p; p = strstr(p + 1, "####")) mark = p + 4;
    if (!mark) {
        if (extract_boxed(answer, out, cap) && out[0]) return 1;
        return copy_trimmed(out, cap, answer, answer + strlen(answer)) && out[0];
    }
    if (extract_hash_answer(answer, out, cap)) return 1;
    end = mark + strcspn(mark, "\n");
    while (mark < end && (*mark == '#' || *mark == '*' || is_space(*mark))) mark++;
    while (end > mark && (end[-1] == '*' || is_space(end[-1]))) end--;
    return copy_trimmed(out, cap, mark, end) && out[0];
}

// The forgiving extraction, which the reward does NOT use: the box, else the last number, else the whole
// text. Good for measuring what a model knows, useless for teaching a format. 1 = box, 2 = last number, 3
// = whole text, 0 = nothing there, or it doesn't fit.
static int extract_lenient(const char* text, char* out, int cap) {
    char number[64], last[64] = "";
    if (extract_boxed(text, out, cap)) return 1;
    for (const char* p = text; *p;) {
        const char* after = p;
        int minus = *p == '-' && (p == text || is_space(p[-1]));  // in 7-4 the minus isn't a sign
        if (!is_digit(p[minus]) && !(p[minus] == '.' && is_digit(p[minus + 1]))) { p++; continue; }
        if (read_number(&after, number, sizeof number)) {
            memcpy(last, number, sizeof last);
            p = after;
        } else do p++; while (is_digit(*p) || *p == ',');
    }
    if (last[0]) return copy_trimmed(out, cap, last, last + strlen(last)) ? 2 : 0;
    return copy_trimmed(out, cap, text, text + strlen(text)) && out[0] ? 3 : 0;
}

/* ---- 5.2 The rewards ---- */

// 1 when the last \boxed{...} of response equals the truth, else 0. truth is the bare answer, such as
// "83", or ends in one (extract_truth). Without a box, or with nothing in it, the reward is 0, whatever
// else the response says. D2 section 4.
float reward_boxed(const char* response, const char* truth) {
    char answer[MAX_ANSWER + 1], expected[MAX_ANSWER + 1];
    if (!extract_boxed(response, answer, sizeof answer)) return 0.0f;
    if (!extract_truth(expected, sizeof expected, truth)) return 0.0f;
    return answers_equal(answer, expected) ? 1.0f : 0.0f;
}

// 1 when the number behind the last #### of response equals the truth, else 0. truth is the bare number,
// or a whole reference solution that ends in "#### 42" (D1). Numbers are compared, not strings: 42, 42.,
// 42.00 and $42.
float reward_gsm8k(const char* response, const char* truth) {
    char answer[64], expected[MAX_ANSWER + 1];
    if (!extract_hash_answer(response, answer, sizeof answer)) return 0.0f;
    if (!extract_truth(expected, sizeof expected, truth)) return 0.0f;
    return answers_equal(answer, expected) ? 1.0f : 0.0f;
}

// Two rewards that the lesson warns of. Partial credit pays 1 for right and boxed, 0.5 for right without a
// box, 0.1 for a box with something wrong in it.
static float reward_partial(const char* response, const char* truth) {
    char answer[MAX_ANSWER + 1], expected[MAX_ANSWER + 1];
    if (reward_boxed(response, truth) == 1.0f) return 1.0f;
    if (extract_boxed(response, answer, sizeof answer)) return 0.1f;
    if (!extract_lenient(response, answer, sizeof answer)) return 0.0f;
    return extract_truth(expected, sizeof expected, truth) && answers_equal(answer, expected) ? 0.5f : 0.0f;
}

// Format only pays 1 for a box, whatever is in it.
static float reward_format(const char* response, const char* truth) {
    char answer[MAX_ANSWER + 1];
    (void)truth;
    return extract_boxed(response, answer, sizeof answer) ? 1.0f : 0.0f;
}

/* ---- Lesson 5 ---- */

static void print_four_rollouts(const char* truth) {
    static const char* const responses[] = {"\\boxed{83}", "The correct answer is \\boxed{83}",
                                            "The final answer is 83", "We get \\boxed{38}", "\\boxed{}"};
    static float (*const rewards[])(const char*, const char*) = {reward_boxed, reward_partial,
                                                                 reward_format};
    static const char* const names[] = {"r1", "r2", "r3", "r4", "--"};
    float r[5][3];
    printf("Four rollouts of it (D2 section 4), and an empty box that tries to cheat:\n\n");
    printf("                                                           partial   format\n");
    printf("     response                         in the box  strict     credit     only\n");
    for (int i = 0; i < 5; i++) {
        char answer[64];
        int found = extract_boxed(responses[i], answer, sizeof answer);
        for (int k = 0; k < 3; k++) r[i][k] = rewards[k](responses[i], truth);
        printf("  %s %-32s %-10s %7.4g %10.4g %8.4g\n", names[i], responses[i],
               !found ? "(no box)" : answer[0] ? answer : "(empty)", r[i][0], r[i][1], r[i][2]);
    }
    printf("\nThe rewards of r1 to r4 are [%g, %g, %g, %g].\n", r[0][0], r[1][0], r[2][0], r[3][0]);
    char fallback[64];
    int how = extract_lenient(responses[2], fallback, sizeof fallback);
    printf("r3 is right and gets %g: the strict reward reads the box and nothing else. A\n", r[2][0]);
    printf("fallback (no box: the %s) would read \"%s\" and pay %d. Then no rollout\n",
           how == 2 ? "last number" : "whole text", fallback, answers_equal(fallback, truth));
    printf("gains anything by using the box. Partial credit pays %g to r3, and %g to the\n", r[2][1],
           r[4][1]);
    printf("empty box for nothing. Format only pays %g to the empty box and %g to the right\n", r[4][2],
           r[2][2]);
    printf("r3: RL makes what is paid more likely, so it would train empty boxes.\n\n");
}

static void print_hash_answers(void) {
    static const char* const responses[] = {"#### 42", "#### 42 apples", "#### $42.00", "#### **42**.",
        "#### 41, no, #### 42", "#### 42, no, #### 41", "The answer is 42", "#### forty-two"};
    const char* truth = "He has 6*7=<<6*7=42>>42 apples.\n#### 42";
    printf("GSM8K's format (D1): the number behind the last ####, compared as a number.\n\n");
    printf("  response               read       reward\n");
    for (size_t i = 0; i < sizeof responses / sizeof *responses; i++) {
        char answer[64];
        int found = extract_hash_answer(responses[i], answer, sizeof answer);
        float reward = reward_gsm8k(responses[i], truth);
        printf("  %-22s %-10s %6.4g\n", responses[i], found ? answer : "(none)", reward);
    }
    printf("\n");
}

static void lesson_5(void) {
    const char *left = "(3x-9)/2", *right = "x+37";
    char truth[32];
    snprintf(truth, sizeof truth, "%.10g", solve_linear(left, right));
    printf("LESSON 5. Rewards: the verifier (D2, D1)\n\n");
    printf("  RLHF  people rank answers, a reward model learns to rank, RL climbs the model\n");
    printf("  RLVR  a program checks the answer,                        RL climbs the check\n\n");
    printf("The check needs no second network, gives the same verdict every time, and judges\n");
    printf("any number of rollouts. It needs questions whose answer can be checked.\n\n");
    printf("The question: half of 3x-9 equals x+37. From %s = %s follows x = %s.\n\n", left, right, truth);
    print_four_rollouts(truth);
    print_comparisons();
    print_hash_answers();
    printf("To take away: the reward is the only thing you design. Right AND in the format\n");
    printf("is one rule, and a reward can be trusted as far as its verifier is right.\n\n");
}

/* ==========================================================================================================
 * CHAPTER 6. Rollouts and the tool                                                                       (D1)
 *
 * Question: what exactly did the model do, and what was done to it?
 *
 * A rollout is one answer, sampled token by token from <|assistant_start|> to <|assistant_end|>. generate()
 * in train_gpt.c does the sampling: sixteen rollouts of each of sixteen questions side by side.
 *
 * The model may use a calculator. It asks by writing
 *
 *     <|python_start|>12*3<|python_end|>
 *
 * The program that runs the model (nanochat calls it the engine) sees the closing token, evaluates the
 * expression and writes the answer itself:
 *
 *     <|output_start|>36<|output_end|>
 *
 * The model goes on from there as if it had written all of it. But it did not: these tokens were FORCED, not
 * sampled. Their mask is 0, and they have no part in the loss. What the model can learn is when to call and
 * what to ask. The result is a fact about the world, like a transition p(s'|s,a) of chapter 1, and a fact has
 * no gradient.
 *
 *                       sampled   mask   in the loss   chosen by
 *     12*3                yes       1        yes       the policy
 *     <|python_end|>      yes       1        yes       the policy: to stop typing is an action too
 *     36                  no        0        no        the calculator
 *
 * In memory. All rollouts of a question begin with the same tokens, so the prompt but for its last token is a
 * segment of its own and is computed once. Each rollout is a segment that continues it. It starts with the
 * prompt's last token, <|assistant_start|>, whose logits predict the rollout's first token: the shift by one
 * of chapter 3, laid out in memory.
 *
 *     segment 0, the prompt    <|bos|> <|user_start|> H o w ... ? <|user_end|>        nothing is scored
 *     segment 1, rollout 0     <|assistant_start|>   T   o   m  ...                   what the model reads
 *                               T                    o   m  ' ' ... <|assistant_end|>  its targets
 *
 * Traps. (1) Leave the output in the loss and the model is trained to predict the calculator: it will happily
 * write <|output_start|> by itself, with a number of its own. (A sampled <|output_start|> is possible in any
 * case. It has mask 1, and is simply a bad idea.) (2) The tool answers only what it understands. For 2**3,
 * 1/0 or "three" there is no output at all, and the model has to live with the silence, as in nanochat. (3)
 * The closing <|assistant_end|> is sampled and belongs to the loss: without it the model never learns to
 * stop. (nanochat's rollouts drop it; ours keep it.)
 * ======================================================================================================== */

enum { EXPRESSION_SIZE = 256 };        // bytes; a longer expression is not evaluated

// The tool itself (written out in the appendix): + - * / and parentheses on numbers, exact inside.
// 1 = evaluated, 0 = no output.
int calculate(const char* expression, char* out, int cap);

// The tool's state after `length` tokens of an answer, for people who want to watch it.
typedef enum { TOOL_IDLE, TOOL_READING, TOOL_CALLED } ToolState;

// Where the machine stands: READING between <|python_start|> and <|python_end|>, CALLED right behind a
// <|python_end|> that closes an expression. from is the first token of the expression.
static ToolState tool_state(const int* ids, int length, int* from) {
    int last = length - 1, i = last - (length > 0 && ids[last] == PYTHON_END);
    while (i >= 0 && ids[i] != PYTHON_START && ids[i] != PYTHON_END) i--;
    *from = i + 1;
    if (i < 0 || ids[i] != PYTHON_START) return TOOL_IDLE;
    return ids[last] == PYTHON_END ? TOOL_CALLED : TOOL_READING;
}

// The calculator as generate() wants it: after a call it returns the tokens to force, otherwise none.
static int tool_calculator(int* forced, int capacity, const int* ids, int length) {
    char expression[EXPRESSION_SIZE], result[EXPRESSION_SIZE];
    int from, count = 0;
    if (tool_state(ids, length, &from) != TOOL_CALLED || length - 1 - from >= EXPRESSION_SIZE) return 0;
    for (int i = from; i < length - 1; i++) {
        if (ids[i] >= 256 || ids[i] == 0) return 0;    // a special token is no arithmetic
        expression[count++] = (char)ids[i];
    }
    expression[count] = 0;
    if (!calculate(expression, result, sizeof result) || capacity < (int)strlen(result) + 2) return 0;
    count = 0;
    forced[count++] = OUTPUT_START;
    for (const char* c = result; *c; c++) forced[count++] = (unsigned char)*c;
    forced[count++] = OUTPUT_END;
    return count;
}

// A rollout's text, special tokens by name: what the reward function reads. Lives until text_free().
static Text rollout_text(const Rollout* r) {
    Text text = {0};
    decode_tokens(&text, r->ids, r->length, 1);
    return text;
}

// Did the tool answer in this rollout? (The tool writes <|output_start|> with mask 0; the model's own has
// mask 1.)
static int used_tool(const Rollout* r) {
    for (int i = 0; i < r->length; i++) if (r->ids[i] == OUTPUT_START && !r->mask[i]) return 1;
    return 0;
}

// ---- a group in memory

// The batch of a group: the shared prompt, then a segment per rollout; targets only where the model sampled.
static void batch_add_group(Batch* b, const Tokens* prompt, const Rollout* rollouts, int K) {
    int last = prompt->length - 1, root = batch_add(b, prompt->ids, NULL, last, -1);
    for (int k = 0; k < K; k++) {
        const Rollout* r = &rollouts[k];
        size_t room = (size_t)r->length;
        int *ids = allocate(room, sizeof(int)), *targets = allocate(room, sizeof(int));
        for (int t = 0; t < r->length; t++) {
            ids[t] = t == 0 ? prompt->ids[last] : r->ids[t - 1];
            targets[t] = r->mask[t] ? r->ids[t] : -1;
        }
        batch_add(b, ids, targets, r->length, root);
        free(ids), free(targets);
    }
}

// What a model said at the scored tokens of a group, in the (K,T1) layout of the losses, where T1 is now the
// length of the longest rollout: 0 where the mask is 0 or the rollout has ended. x are log-probabilities, or
// later the values of a value model.
static void scatter_scored(float* x, int* mask, const float* scored, const Rollout* rollouts, int K,
                           int T1) {
    for (int k = 0; k < K; k++)
        for (int t = 0; t < T1; t++) {
            mask[k * T1 + t] = t < rollouts[k].length && rollouts[k].mask[t];
            x[k * T1 + t] = mask[k * T1 + t] ? *scored++ : 0.0f;
        }
}

static int longest_rollout(const Rollout* rollouts, int K) {
    int longest = 1;
    for (int k = 0; k < K; k++) longest = max_int(longest, rollouts[k].length);
    return longest;
}

// The different ones among K rollouts: distinct (their number is returned), and place (K), where each rollout
// stands among them. A policy that knows what it wants writes the same answer again and again, and a model
// that only reads needs to read it once.
static int distinct_rollouts(Rollout* distinct, int* place, const Rollout* rollouts, int K) {
    int count = 0;
    for (int k = 0; k < K; k++) {
        const Rollout* r = &rollouts[k];
        size_t bytes = (size_t)r->length * sizeof(int);
        int i = 0;
        while (i < count && !(distinct[i].length == r->length && !memcmp(distinct[i].ids, r->ids, bytes) &&
                              !memcmp(distinct[i].mask, r->mask, bytes)))
            i++;
        if (i == count) distinct[count++] = *r;
        place[k] = i;
    }
    return count;
}

// log-probabilities of a group under a model that only reads, in the (K,T1) layout; see scatter_scored.
static void read_group(float* logp, int* mask, Model* m, const Tokens* prompt, const Rollout* rollouts, int K,
                       int T1) {
    Rollout* distinct = allocate((size_t)K, sizeof(Rollout));
    int *place = allocate((size_t)K, sizeof(int)), *from = allocate((size_t)K + 1, sizeof(int));
    int count = distinct_rollouts(distinct, place, rollouts, K);
    Batch b = {0};
    batch_add_group(&b, prompt, distinct, count);
    model_forward(m, &b);
    for (int i = 0; i < count; i++)
        from[i + 1] = from[i] + count_masked(distinct[i].mask, distinct[i].length);
    for (int k = 0; k < K; k++)
        scatter_scored(logp + k * T1, mask + k * T1, m->acts.logp + from[place[k]], &rollouts[k], 1, T1);
    batch_free(&b);
    free(distinct), free(place), free(from);
}

// ---- a rollout, token by token

// A token as it may be printed in a table: text[] holds at least 24 characters.
static const char* token_text(char* text, int id) {
    if (id >= 256) snprintf(text, 24, "%s", id < VOCAB_SIZE ? special_names[id - 256] : "?");
    else if (id == '\n') snprintf(text, 24, "'\\n'");
    else if (id >= 0x20 && id < 0x7F) snprintf(text, 24, "'%c'", id);
    else snprintf(text, 24, "\\x%02X", (unsigned)id);
    return text;
}

static const char* tool_state_name(const Rollout* r, int t) {
    static const char* const names[] = {"idle", "reading", "called"};
    int from;
    return r->mask[t] ? names[tool_state(r->ids, t + 1, &from)] : "answers";
}

// A rollout that follows a script instead of a model: each token of the script counts as sampled, and the
// tool answers where it is called. Lives until rollouts_free().
static Rollout* play_script(const int* script, int length) {
    Rollout* r = allocate(1, sizeof(Rollout));
    int room = length + EXPRESSION_SIZE;
    r->ids = allocate((size_t)room, sizeof(int)), r->mask = allocate((size_t)room, sizeof(int));
    r->logp = allocate((size_t)room, sizeof(float)), r->logp_sampler = allocate((size_t)room, sizeof(float));
    for (int i = 0; i < length; i++) {
        r->mask[r->length] = 1;
        r->ids[r->length++] = script[i];
        r->length += tool_calculator(r->ids + r->length, room - r->length - (length - i), r->ids, r->length);
    }
    r->finished = length > 0 && script[length - 1] == ASSISTANT_END;
    return r;
}

// log pi(token | what came before) of every sampled token of a rollout under a model; 0 where forced.
static void score_rollout(float* logp, Model* m, const Tokens* prompt, const Rollout* r) {
    Batch b = {0};
    batch_add_group(&b, prompt, r, 1);
    model_forward(m, &b);
    for (int t = 0, i = 0; t < r->length; t++) logp[t] = r->mask[t] ? m->acts.logp[i++] : 0.0f;
    batch_free(&b);
}

// A number of nats (or of thousandths) in 8 columns, with as many decimals as fit; "-" where the token was
// not the model's choice.
static void print_nats(double x, int sampled) {
    double size = fabs(x);
    if (sampled) printf(" %7.*f", size < 9.99995 ? 4 : size < 99.9995 ? 3 : size < 999.995 ? 2 : 0, x);
    else printf("       -");
}

static void print_change(double x, int sampled) { // the same with its sign
    double size = fabs(x);
    if (!sampled || size < 5e-5) print_nats(0.0, sampled);
    else printf(" %+7.*f", size < 9.99995 ? 4 : size < 99.9995 ? 3 : size < 999.995 ? 2 : 0, x);
}

// A rollout as a table: one line per token, and the sums in the last line. Column m is the mask, column tool
// the state of the tool behind the token.
//   logp (length)    log pi of each sampled token, nats
//   other (length)   the same under a second model, or NULL; the first is then called A and this one B
//   slope (length)   d(loss)/d(log pi) of a loss that is linear in log pi, or NULL. A token's share of such a
//                    loss is slope * log pi. Both are printed in thousandths.
static void print_tokens(const Rollout* r, const float* logp, const float* other, const float* slope) {
    int width = other && slope ? 13 : 19, cut = width < 19 ? 2 : 0; // 13: special tokens without <| and |>
    double sum = 0.0, sum_other = 0.0, share = 0.0;
    char text[24], left[64];
    printf("  t  id %-*s who     m%8s", width, "token", other ? "logp A" : "log pi");
    printf("%s%s tool\n", other ? "  logp B   B - A" : "", slope ? "   share   slope" : "");
    for (int t = 0; t < r->length; t++) {
        const char* name = token_text(text, r->ids[t]);
        int strip = r->ids[t] >= BOS && r->ids[t] < VOCAB_SIZE ? cut : 0, sampled = r->mask[t];
        printf("%3d %3d %-*.*s %-7s %d", t, r->ids[t], width, (int)strlen(name) - 2 * strip, name + strip,
               sampled ? "sampled" : "forced", sampled);
        print_nats(logp[t], sampled);
        if (other) print_nats(other[t], sampled), print_change((double)other[t] - logp[t], sampled);
        if (slope) print_nats(0.0 + 1e3 * slope[t] * logp[t], 1), print_nats(0.0 + 1e3 * slope[t], 1);
        printf(" %s\n", tool_state_name(r, t));
        if (sampled) sum += logp[t], sum_other += other ? other[t] : 0.0f;
        if (slope) share += 1e3 * slope[t] * logp[t];
    }
    snprintf(left, sizeof left, "sum over %d sampled of %d", count_masked(r->mask, r->length), r->length);
    printf("%-*s", width + 18, left);
    print_nats(sum, 1);
    if (other) print_nats(sum_other, 1), print_change(sum_other - sum, 1);
    if (slope) print_nats(0.0 + share, 1);
    printf("\n");
}

static void lesson_6(void) {
    const char* question = "Tom has 17 pens and buys 26 more. How many pens has Tom?";
    Tokens prompt = {0}, script = {0};
    render_prompt(&prompt, question);
    tokens_add_text(&script, "He has ", 7, 1);
    tokens_add(&script, PYTHON_START, 1);
    tokens_add_text(&script, "17+26", 5, 1);
    tokens_add(&script, PYTHON_END, 1);
    tokens_add_text(&script, ".\n#### 43", 9, 1);
    tokens_add(&script, ASSISTANT_END, 1);
    Rollout* r = play_script(script.ids, script.length);
    Config small = train_defaults().config;
    small.layers = 1;
    Model m = model_new(small);
    model_init(&m, 6);
    score_rollout(r->logp, &m, &prompt, r);

    printf("LESSON 6. Rollouts and the tool (D1)\n\n");
    printf(
        "Question: %s\n\nThe answer below follows a script, so that the lesson needs no trained model;\nthe ",
        question);
    printf("log-probabilities are those of an untrained one (about -ln %d = %.2f\neach). The tool is the "
           "real one.\n\n",
           VOCAB_SIZE, -log(VOCAB_SIZE));
    print_tokens(r, r->logp, NULL, NULL);
    int sampled = count_masked(r->mask, r->length);
    printf("\nThis sum over the %d sampled tokens is log pi(y|x). The %d forced ones are\n", sampled,
           r->length - sampled);
    printf("context for what follows, as the question is. They are not part of the answer's\nprobability and "
           "get no gradient.\n");
    printf("\nWhat the tool answers:\n\n  %-22s %s\n", "expression", "output");
    const char* const expressions[] = {"17+26", "48/2", "0.2*50", "(3+4)*1,000", "1/3",
                                       "2**3",  "1/0",  "seven",  "7*"};
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) {
        char out[64];
        printf("  %-22s %s\n", expressions[i], calculate(expressions[i], out, sizeof out) ? out : "(none)");
    }
    printf("\nTake away: forced tokens belong to what the model reads, not to what it does.\n");
    rollouts_free(r, 1);
    tokens_free(&prompt), tokens_free(&script), model_free(&m);
}

/* ==========================================================================================================
 * CHAPTER 7. Advantages: better than average                                               (D1, D3 section 4)
 *
 * Question: sixteen answers to one question have been marked 0 or 1. By how much should each be made more or
 * less likely?
 *
 * The gradient of chapter 1 says: by its reward. With rewards of 0 and 1 a wrong answer then says nothing at
 * all; and when all sixteen are right, all sixteen push, each against the others, with nothing left to learn.
 * Subtract what was to be expected, and every answer has its say. The mean of the group, the K answers to the
 * same question, is the cheapest expectation there is: no second model has to learn it.
 *
 *     centered    A_i = r_i - mean(r)                                  nanochat (D1), Dr. GRPO
 *     RLOO        A_i = r_i - mean of the OTHER rewards                leave one out (Kool et al. 2019)
 *     GRPO        A_i = (r_i - mean(r)) / (std(r) + eps)               DeepSeekMath 2024
 *     GAE         A_t = sum over l of (gamma lambda)^l delta_{t+l}     per step, needs a V: chapter 2
 *
 * std is the standard deviation, the root of the mean square of r_i - mean(r); eps is a tiny number, against
 * 0/0. RLOO is centered, stretched: the mean of the others is (K mean - r_i) / (K - 1), so
 *
 *     r_i - (K mean - r_i) / (K - 1) = K / (K - 1) * (r_i - mean)
 *
 * Why K / (K - 1) matters: the group's mean contains r_i itself, so centered takes a share 1/K of each
 * answer's own signal away. Its expected gradient is (K - 1) / K times the true one: right direction,
 * slightly short step. RLOO has exactly the true one. GRPO divides by a number that depends on the rewards,
 * so its expected gradient is the true one times a factor that differs from question to question: the factor
 * is larger where answers are nearly always or nearly never right. The lesson computes all three expectations
 * exactly.
 *
 * Which standard deviation? torch.std divides the squares by K - 1 ("sample"), numpy.std by K ("population").
 * For [1,1,0,0] the mean is 1/2 and the squares add up to 4 * 1/4 = 1:
 *
 *     sample      std = sqrt(1/3) = 0.5774      A = 0.5 / 0.5774 = +-0.8660
 *     population  std = sqrt(1/4) = 0.5         A = 0.5 / 0.5    = +-1
 *
 * No signal. When all K rewards are equal, every rule gives 0 for everyone: nothing is learned from that
 * question in this step. With a chance p of being right that happens with probability p^K + (1 - p)^K.
 *
 * Traps. (1) 0/0 in an all-equal group: the result here is exactly 0. (2) "Most rewards equal" is not "no
 * signal". D3's third experiment expects standardized advantages near 0 when 6 of 8 scores are the same; 6
 * zeros and 2 ones give -0.54 and +1.62. Only 8 of 8 give 0. (3) One number per answer: all its sampled
 * tokens get the same advantage. (4) The baseline should come from the same question. The mean of the whole
 * batch would not bend the gradient either (chapter 4), but it compares hard questions with easy ones: noise.
 * ======================================================================================================== */

// A_i = r_i - mean(r). adv, reward (K); adv may be the same array as reward. Unit: that of the rewards. K < 1
// writes nothing, K = 1 gives 0. A group of equal rewards gives exactly 0: in double the sum of K equal
// floats, and so their mean, is exact (24 bits of r plus the bits of K fit into 53). D1; Dr. GRPO (Liu et al.
// 2025).
void advantages_centered(float* adv, const float* reward, int K) {
    double mean = 0.0;
    for (int k = 0; k < K; k++) mean += reward[k];
    mean /= K > 0 ? K : 1;
    for (int k = 0; k < K; k++) adv[k] = (float)(reward[k] - mean);
}

// Centered, divided by (standard deviation + eps); the squares are divided by `divisor`: K - 1 sample, K
// population.
static void advantages_standardized(float* adv, const float* reward, int K, int divisor, double eps) {
    double square = 0.0;
    advantages_centered(adv, reward, K);
    for (int k = 0; k < K; k++) square += (double)adv[k] * adv[k];
    if (square == 0.0) return;                                     // all equal, or K = 1: already exactly 0
    double scale = sqrt(square / divisor) + eps;
    for (int k = 0; k < K; k++) adv[k] = (float)(adv[k] / scale);
}

// A_i = (r_i - mean(r)) / (std(r) + eps) with the sample standard deviation (K - 1), as torch.std. adv,
// reward (K); the two may be the same array. No unit. K < 1 writes nothing; K = 1 (where torch.std is NaN)
// and a group of equal rewards give exactly 0, even for eps = 0. DeepSeekMath (Shao et al. 2024); D3
// section 4.
void advantages_grpo(float* adv, const float* reward, int K, float eps) {
    advantages_standardized(adv, reward, K, K - 1, eps);
}

// A_i = r_i - mean of the other K - 1 rewards = K / (K - 1) * (r_i - mean(r)). adv, reward (K); the two may
// be the same array. Unit: that of the rewards. K < 1 writes nothing; K = 1 has no others and gives 0. RLOO:
// Kool et al. 2019, Ahmadian et al. 2024; D3 section 4.
void advantages_rloo(float* adv, const float* reward, int K) {
    advantages_centered(adv, reward, K);
    for (int k = 0; k < K && K > 1; k++) adv[k] = (float)((double)K / (K - 1) * adv[k]);
}

// Probability that K answers with a chance p each carry no signal: all right or all wrong.
static double no_signal_odds(double p, int K) { return pow(p, K) + pow(1.0 - p, K); }

// The same by playing it: share of groups in which the largest absolute centered advantage is 0.
static double no_signal_sampled(double p, int K, int groups, Rng* rng) {
    int silent = 0;
    for (int g = 0; g < groups; g++) {
        float reward[64], adv[64], largest = 0.0f;
        for (int k = 0; k < K; k++) reward[k] = random_uniform(rng) < p ? 1.0f : 0.0f;
        advantages_centered(adv, reward, K);
        for (int k = 0; k < K; k++) if (fabs(adv[k]) > largest) largest = (float)fabs(adv[k]);
        silent += largest == 0.0f;
    }
    return (double)silent / groups;
}

enum { RULE_CENTERED, RULE_GRPO, RULE_GRPO_POPULATION, RULE_RLOO, RULES };

static const char* const rule_names[RULES] = {"centered", "GRPO sample", "GRPO popul.", "RLOO"};

static void advantages_by_rule(float* adv, const float* reward, int K, int rule) {
    if (rule == RULE_CENTERED) advantages_centered(adv, reward, K);
    if (rule == RULE_GRPO) advantages_grpo(adv, reward, K, 1e-8f);
    if (rule == RULE_GRPO_POPULATION) advantages_standardized(adv, reward, K, K, 1e-8);
    if (rule == RULE_RLOO) advantages_rloo(adv, reward, K);
}

// Expected gradient of a rule, exactly. A policy with one parameter answers right with p = sigmoid(theta);
// its score is d log pi / d theta = r - p, since r = 1 is the answer "right". One update uses g = (1/K) * sum
// over i of A_i (r_i - p); its mean is the sum over all 2^K groups of probability times g. The truth is dJ /
// d theta = dp / d theta = p (1 - p).
static double expected_gradient(double p, int K, int rule) {
    double expected = 0.0;
    for (unsigned group = 0; group < 1u << K; group++) {           // bit k of `group` = reward of answer k
        float reward[16], adv[16] = {0};
        double probability = 1.0, g = 0.0;
        for (int k = 0; k < K; k++) {
            reward[k] = (float)(group >> k & 1);
            probability *= reward[k] > 0.0f ? p : 1.0 - p;
        }
        advantages_by_rule(adv, reward, K, rule);
        for (int k = 0; k < K; k++) g += adv[k] * (reward[k] - p) / K;
        expected += probability * g;
    }
    return expected;
}

// GAE looks at one answer at a time. Spread a reward over an answer of T tokens, all of it on the last one,
// with a value function that says `value` everywhere (here the group's mean), and read the first and the last
// token.
static void gae_of_answer(float* first, float* last, float reward, float value, int T, float lambda) {
    float rewards[64] = {0}, values[64], adv[64];
    rewards[T - 1] = reward;
    for (int t = 0; t < T; t++) values[t] = value;
    advantages_gae(adv, rewards, values, T, 1.0f, lambda);
    *first = adv[0];
    *last = adv[T - 1];
}

// One line per distinct reward value of the group, its advantages under every rule, then the sums.
static void print_group(const char* title, const float* reward, int K) {
    enum { TOKENS = 10 };
    float adv[RULES][16];
    double mean = 0.0;
    for (int k = 0; k < K; k++) mean += (double)reward[k] / K;
    printf("%s", title);
    for (int k = 0; k < K; k++) printf("%s%g", k ? "," : " [", reward[k]);
    printf("], K = %d, mean %.4f\n", K, mean);
    printf("  reward  times   centered  GRPO smpl  GRPO popl      RLOO |  GAE l=1  GAE l=.95\n");
    for (int rule = 0; rule < RULES; rule++) advantages_by_rule(adv[rule], reward, K, rule);
    for (int k = 0; k < K; k++) {
        int times = 0, seen = 0;
        float first, last, faded, same;
        for (int i = 0; i < K; i++) times += reward[i] == reward[k];
        for (int i = 0; i < k; i++) seen += reward[i] == reward[k];
        if (seen) continue;
        gae_of_answer(&first, &last, reward[k], (float)mean, TOKENS, 1.0f);
        gae_of_answer(&faded, &same, reward[k], (float)mean, TOKENS, 0.95f);
        printf("%8g %6d %10.4f %10.4f %10.4f %9.4f | %8.4f %9.4f\n", reward[k], times, adv[RULE_CENTERED][k],
               adv[RULE_GRPO][k], adv[RULE_GRPO_POPULATION][k], adv[RULE_RLOO][k], first, faded);
    }
    printf("  sum of all    ");
    for (int rule = 0; rule < RULES; rule++) {
        double sum = 0.0;
        for (int k = 0; k < K; k++) sum += adv[rule][k];
        printf(rule == RULE_RLOO ? "%10.4f" : rule ? " %10.4f" : "%9.4f", fabs(sum) < 5e-6 ? 0.0 : sum);
    }
    printf(" |\n");
}

static void print_gae_example(void) {
    const float reward[5] = {0.0f, 0.0f, 0.5f, 0.0f, 1.0f}, value[5] = {0.2f, 0.1f, 0.4f, 0.6f, 0.5f};
    const float setting[4][2] = {{1.0f, 1.0f}, {1.0f, 0.95f}, {0.99f, 0.95f}, {0.9f, 0.0f}};
    printf("GAE with a value function that has an opinion per step (terminal value 0):\n");
    printf("   gamma  lambda      t = 0         1         2         3         4\n");
    printf("   reward        ");
    for (int t = 0; t < 5; t++) printf("%10.4g", reward[t]);
    printf("\n   value V       ");
    for (int t = 0; t < 5; t++) printf("%10.4g", value[t]);
    for (int i = 0; i < 4; i++) {
        float adv[5];
        advantages_gae(adv, reward, value, 5, setting[i][0], setting[i][1]);
        printf("\n%8.2f %7.2f ", setting[i][0], setting[i][1]);
        for (int t = 0; t < 5; t++) printf("%10.4f", adv[t]);
    }
    printf("\n\n");
}

static void print_expected_gradients(void) {
    const double chances[] = {0.01, 0.1, 0.5, 0.9, 0.99};
    enum { K = 8 };
    printf("Expected gradient over ALL %d groups of K = %d, divided by the true p(1-p):\n", 1 << K, K);
    printf("   chance p    p(1-p)");
    for (int rule = 0; rule < RULES; rule++) printf("%13s", rule_names[rule]);
    printf("\n");
    for (int i = 0; i < 5; i++) {
        double p = chances[i];
        printf("%11.2f %9.4f", p, p * (1.0 - p));
        for (int rule = 0; rule < RULES; rule++)
            printf("%13.4f", expected_gradient(p, K, rule) / (p * (1.0 - p)));
        printf("\n");
    }
    printf("RLOO is exact. Centered is short by (K-1)/K = %.4f, for every p alike. GRPO\n", (K - 1.0) / K);
    printf("stretches the gradient of nearly solved and nearly hopeless questions the most.\n\n");
}

static void print_no_signal(void) {
    const double chances[] = {0.01, 0.1, 0.1875, 0.5, 0.9, 0.99};
    const int sizes[] = {2, 4, 8, 16};
    Rng rng = {7};
    printf("Chance that a group carries no signal: p^K + (1-p)^K | 20000 groups played.\n");
    printf("   chance p");
    for (int j = 0; j < 4; j++) printf("          K = %-2d%s", sizes[j], j < 3 ? " " : "");
    printf("\n");
    for (int i = 0; i < 6; i++) {
        printf("%11.4f", chances[i]);
        for (int j = 0; j < 4; j++)
            printf("  %6.4f | %6.4f", no_signal_odds(chances[i], sizes[j]),
                   no_signal_sampled(chances[i], sizes[j], 20000, &rng));
        printf("\n");
    }
    printf("A question is worth its samples when it is neither hopeless nor solved.\n\n");
}

static void print_eight(void) {
    printf("Eight answers, c of them right (GRPO, sample std): what is \"near zero\"?\n");
    printf("   c        ");
    for (int c = 0; c <= 8; c++) printf("%7d", c);
    for (int side = 1; side >= 0; side--) {
        printf(side ? "\n   A, right " : "\n   A, wrong ");
        for (int c = 0; c <= 8; c++) {
            float reward[8], adv[8];
            for (int k = 0; k < 8; k++) reward[k] = k < c ? 1.0f : 0.0f;
            advantages_grpo(adv, reward, 8, 1e-8f);
            if (side ? c == 0 : c == 8) printf("      -");
            else printf("%7.3f", side ? adv[0] : adv[7]);
        }
    }
    printf("\nSix equal scores of eight (c = 2 or 6) still teach; only eight equal do not.\n\n");
}

static void lesson_7(void) {
    const float four[4] = {1, 1, 0, 0}, equal[4] = {1, 1, 1, 1}, one[1] = {1}, two[2] = {1, 0};
    const float sixteen[16] = {1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
    printf("LESSON 7. Advantages: better than average (D1, D3 section 4)\n\n");
    printf("GAE here: answers of 10 tokens, reward on the last, V = group mean everywhere,\n");
    printf("gamma 1; the first token's A. l (lambda) = 1 is centered; 0.95 fades by 0.95^9.\n\n");
    print_group("D2's four rollouts", four, 4);
    printf("\n");
    print_group("D1's sixteen", sixteen, 16);
    printf("\n");
    print_group("All equal", equal, 4);
    printf("\n");
    print_group("One rollout", one, 1);
    printf("\n");
    print_group("Two rollouts", two, 2);
    printf("\n");
    print_gae_example();
    print_expected_gradients();
    print_no_signal();
    print_eight();
    printf("Take away: an advantage is a comparison. Without difference there is nothing to\n");
    printf("learn, and the rules differ only in how they scale the difference.\n");
}

/* ==========================================================================================================
 * CHAPTER 8. The objective: reward minus beta KL                                               (D3 section 5)
 *
 * The question. A policy that only chases reward leaves the region where its reward can be trusted, and
 * forgets what pre-training taught it. How do we hold it near its starting point, and how do we measure
 * "near" from samples?
 *
 * The objective has two parts that pull against each other:
 *
 *     J(pi) = E over x ~ D, y ~ pi(.|x) of [ r(x,y) ]  -  beta E over x ~ D of [ KL(pi(.|x) || pi_ref(.|x)) ]
 *
 *     D       the set of prompts              pi      the policy in training
 *     r       judge or verifier               pi_ref  where it started: a frozen copy, usually the SFT model
 *     beta    the price of one nat of drift   nat     the unit of natural logarithms, 1.443 bits
 *
 * KL(P||Q) = sum_y P(y) log(P(y)/Q(y)) is never negative, is 0 only for P = Q, and is not symmetric. nanochat
 * (D1) leaves the second part out, that is beta = 0.
 *
 * Estimating it. A sum over all answers cannot be done, but it is an average over answers of the policy,
 * and the rollouts are such answers:
 *
 *     KL(pi || pi_ref) = E over y ~ pi of [ log_ratio(y) ],     about (1/N) sum_i log_ratio(y_i)
 *     log_ratio(y)     = log pi(y|x) - log pi_ref(y|x),         in the code logp - logp_ref
 *
 * With samples FROM THE POLICY, three estimators are in use (Schulman 2020):
 *
 *     k1 = log_ratio                         right on average, noisy, negative for many samples
 *     k2 = log_ratio^2 / 2                   never negative, wrong on average unless the drift is small
 *     k3 = exp(-log_ratio) - 1 + log_ratio   right on average, never negative
 *
 * k3 is k1 plus exp(-log_ratio) - 1. That extra is pi_ref/pi - 1, and its average under pi is
 * sum pi * pi_ref/pi - 1 = 1 - 1 = 0: it moves no average, and near the reference it cancels noise. And
 * e^u >= 1 + u for every u, so k3 >= 0.
 *
 * Using it. There are two places for a KL estimate, and they do not do the same thing. In the REWARD it is a
 * number, and the policy gradient multiplies it with the score. In the LOSS it is differentiated. The
 * gradient that we want is
 *
 *     grad KL = E[ log_ratio * grad log pi ]                     (the term E[grad log pi] is 0, chapter 4)
 *
 *     k1 in the reward             E[ log_ratio * score ]                 exact
 *     k1 in the loss               E[ 1 * score ] = 0                     does nothing at all, on average
 *     k2 in the loss               E[ log_ratio * score ]                 exact, although k2 itself is biased
 *     k3 in the loss (GRPO paper)  E[ (1 - pi_ref/pi) * score ]           grad KL(pi_ref || pi), the other KL
 *     k3 in the reward             E[ k3 * score ]                        grad of one KL minus the other
 *     k3 * pi/pi_sample in the loss                                       exact again
 *
 * score is grad log pi; pi_sample is the policy that drew the samples, equal to pi but a constant.
 *
 * The fifth line deserves a second look. Close to the reference the two KLs differ only by the cube of the
 * drift, so their difference has almost no gradient: k3 in the reward hardly holds the policy at all.
 *
 * An unbiased estimate is not an unbiased gradient. One more condition is easy to miss: "k2 exact" needs the
 * log-ratio of the whole ANSWER. Applied token by token, as is usual, a loss term only sees its own token and
 * not what that token leads to later. The reward form with the return does see it.
 *
 * Where it leads. Write pi*(y) = pi_ref(y) exp(r(y)/beta) / Z, where Z makes the sum 1. Then
 *
 *     J(pi) = E[ r - beta log(pi/pi_ref) ] = beta E[ log( pi_ref exp(r/beta) / pi ) ]
 *           = beta log Z  -  beta KL(pi || pi*)
 *
 * so the best policy is pi*, its value is beta log Z, and every answer that pi_ref can write survives, only
 * reweighted. Large beta: stay. Small beta: the best answers take all.
 *
 * Where D3 needs care.
 *   - Signs. D3 prints k1 = -log_ratio and k3 = exp(log_ratio) - 1 - log_ratio, with the same log_ratio. Then
 *     k1 estimates minus the KL, and k3 estimates nothing useful, since its exponential has the policy on top
 *     and is averaged over the policy. For samples from pi_ref that k3 is right, as an estimate of
 *     KL(pi_ref || pi). Here the sign follows the samples, which come from the policy.
 *   - D3 recommends k3 and puts the KL into the reward. The two do not go together (see above): in the reward
 *     use k1. Its single values may be negative, and that is no flaw there.
 *   - "k3 has low variance" holds for moderate drift. Where the policy has almost given up an answer that
 *     pi_ref likes, pi_ref/pi is huge and k3 is the noisier one. The lesson prints both.
 *   - Sum or mean. D3's code subtracts beta times the MEAN over the tokens and calls it a literal translation
 *     of the formula. The formula has the log-ratio of the answer, which is the SUM over its tokens. The mean
 *     is n times smaller for n tokens, so long answers may drift almost for free.
 * ======================================================================================================== */

// e^x and its slope for log-ratios that a drifting policy can make large. Up to x = 80 this is exp: e^80 =
// 5.5e34, and the largest float is 3.4e38. Past 80 it goes on along the tangent, so that value and slope stay
// finite, keep their sign and still belong together. A cut at 80 would have slope 0 and would tell the
// optimizer that all is well exactly where the drift is worst.
enum { EXP_LIMIT = 80 };

static double bounded_exp(double* slope, double x) {
    *slope = exp(x > EXP_LIMIT ? EXP_LIMIT : x);           // a NaN stays a NaN
    return x > EXP_LIMIT ? *slope * (1.0 + x - EXP_LIMIT) : *slope;
}

// Estimate of KL(policy || reference) from one sample of the policy, in nats, and its derivative by logp.
// estimator is 1, 2 or 3. k3 of a small log-ratio x is about x^2/2, the tiny rest of numbers near 1: expm1(x)
// = e^x - 1 keeps the digits that exp(x) - 1 loses.
static double kl_estimate(double* slope, double log_ratio, int estimator) {
    if (estimator == 1) { *slope = 1.0; return log_ratio; }
    if (estimator == 2) { *slope = log_ratio; return 0.5 * log_ratio * log_ratio; }
    double x = -log_ratio, power;
    double ratio_minus_1 = x > EXP_LIMIT ? bounded_exp(&power, x) - 1.0 : expm1(x);
    *slope = x > EXP_LIMIT ? 1.0 - power : -ratio_minus_1;
    return ratio_minus_1 - x;
}

static void kl_estimates(float* kl, const float* logp, const float* logp_ref, int n, int estimator) {
    double slope;
    for (int i = 0; i < n; i++) kl[i] = (float)kl_estimate(&slope, (double)logp[i] - logp_ref[i], estimator);
}

// The three estimators of KL(policy || reference), one value per sample or token, in nats.
//   kl (n)         out
//   logp (n)       log-probability under the policy, which also drew the sample
//   logp_ref (n)   log-probability of the same sample under the reference
// Nothing is averaged and there is no mask: use masked_mean or a sum. n <= 0 writes nothing. The result is
// finite for every log-ratio between -6000 and 6000 (see bounded_exp); infinite or NaN input gives infinite
// or NaN output. Schulman, "Approximating KL Divergence" (2020), where r = pi_ref/pi, k1 = -log r and
// k3 = (r - 1) - log r.
void kl_k1(float* kl, const float* logp, const float* logp_ref, int n) {
    kl_estimates(kl, logp, logp_ref, n, 1);
}
void kl_k2(float* kl, const float* logp, const float* logp_ref, int n) {
    kl_estimates(kl, logp, logp_ref, n, 2);
}
void kl_k3(float* kl, const float* logp, const float* logp_ref, int n) {
    kl_estimates(kl, logp, logp_ref, n, 3);
}

// ---- from tokens to one number: the only place where losses are averaged --------------------------------
//
// Every loss below is  sum over sampled tokens of  weight(sequence) * f(token),  and papers differ in the
// weight:
//
//     NORM_TOKEN_MEAN      1 / (sampled tokens in the batch)   every token counts the same     nanochat, DAPO
//     NORM_SEQUENCE_MEAN   1 / (B * tokens of its sequence)    every answer counts the same    GRPO paper
//     NORM_SEQUENCE_SUM    1 / B                               log pi(y) = sum over tokens     REINFORCE
//
// The third is the gradient of the objective. The second gives a token of a long answer less weight than a
// token of a short one. The first weighs all tokens of a batch alike, and less the more of them there are.
// (Dr. GRPO's norm, in chapter 10, is the third divided by a constant.)
enum { NORM_TOKEN_MEAN, NORM_SEQUENCE_MEAN, NORM_SEQUENCE_SUM };

typedef struct {                  // what a loss may look at for one token
    double logp;                  // log-probability under the policy, in nats
    double log_ratio;             // minus that of the policy that sampled, or of the reference
    double advantage;             // of the token's sequence, or its own
    double clip_low, clip_high;   // losses with a ratio; the value loss has its bound in clip_high
    int estimator;                // loss_kl only
} TokenInput;

typedef struct {                  // the arrays of a loss; what it does not need is NULL
    const float *logp, *logp_other;   // (B,T1), (B,T1); NULL = 0
    const float* advantage;           // (B), or (B,T1) with per_token; NULL = 1
    const int* mask;                  // (B,T1)
    int B, T1, per_token;
    int sequence_ratio;               // 1 = the log-ratio is the mean over the sequence: GSPO, chapter 9
} LossArrays;

typedef double (*TokenLoss)(double* slope, const TokenInput* in);   // f(token), and its derivative by logp

// Mean of logp - logp_other over the sampled tokens of sequence b.
static double mean_log_ratio(const LossArrays* a, int b) {
    double sum = 0.0, count = 0.0;
    for (size_t i = (size_t)b * a->T1; i < ((size_t)b + 1) * a->T1; i++)
        if (a->mask[i]) sum += (double)a->logp[i] - (a->logp_other ? a->logp_other[i] : 0.0f), count++;
    return count > 0.0 ? sum / count : 0.0;
}

// loss = sum of weight * f, dlogp = weight * slope, and exactly 0 where the mask is 0. Masked entries are
// never read, so they may hold anything. No sampled token at all, or B or T1 below 1: loss 0, gradient 0. A
// sequence without sampled tokens adds nothing but still counts in B: it is a rollout that was paid for, and
// leaving it out would make the step size depend on how many answers happened to be empty. An unknown norm:
// NaN, gradient 0.
static double average_tokens(float* dlogp, TokenLoss token_loss, TokenInput in, const LossArrays* a,
                             int norm) {
    int B = a->B, T1 = a->T1;
    const int* mask = a->mask;
    double loss = 0.0, in_batch = 0.0;
    int known = norm == NORM_TOKEN_MEAN || norm == NORM_SEQUENCE_MEAN || norm == NORM_SEQUENCE_SUM;
    if (B < 1 || T1 < 1) return known ? 0.0 : NAN;
    for (size_t i = 0; i < (size_t)B * T1; i++) {
        dlogp[i] = 0.0f;
        in_batch += mask[i] != 0;
    }
    if (!known) return NAN;
    for (int b = 0; b < B; b++) {
        size_t start = (size_t)b * T1, end = start + T1;
        double in_sequence = 0.0, of_sequence = a->sequence_ratio ? mean_log_ratio(a, b) : 0.0;
        for (size_t i = start; i < end; i++) in_sequence += mask[i] != 0;
        if (in_sequence == 0.0) continue;
        double weight = norm == NORM_TOKEN_MEAN    ? 1.0 / in_batch
                      : norm == NORM_SEQUENCE_MEAN ? 1.0 / (B * in_sequence)
                                                   : 1.0 / B;
        for (size_t i = start; i < end; i++) {
            if (!mask[i]) continue;
            double slope, other = a->logp_other ? a->logp_other[i] : 0.0;
            in.logp = a->logp[i];
            in.log_ratio = a->sequence_ratio ? of_sequence : in.logp - other;
            in.advantage = a->advantage ? a->advantage[a->per_token ? i : (size_t)b] : 1.0;
            loss += weight * token_loss(&slope, &in);
            dlogp[i] = (float)(weight * slope);
        }
    }
    return loss;
}

static double token_kl(double* slope, const TokenInput* in) {
    return kl_estimate(slope, in->log_ratio, in->estimator);
}

// A KL estimate used as a loss (to be multiplied by beta and added to another loss).
//   dlogp (B,T1)            out: d(loss)/d(logp), exactly 0 where mask is 0
//   logp, logp_ref (B,T1)   nats per token;  mask (B,T1): 1 = sampled by the policy
//   norm, estimator         NORM_...; 1, 2 or 3 for k1, k2, k3. Anything else: NaN, gradient 0
// The gradient is that of the chosen estimator, as autograd would give it: k1 -> 1, k2 -> log_ratio,
// k3 -> 1 - pi_ref/pi. The chapter head says what each is worth. Returns nats; empty input: see
// average_tokens.
double loss_kl(float* dlogp, const float* logp, const float* logp_ref, const int* mask, int B, int T1,
               int norm, int estimator) {
    TokenInput in = {.estimator = estimator};
    if (estimator < 1 || estimator > 3) norm = -1;
    LossArrays a = {.logp = logp, .logp_other = logp_ref, .mask = mask, .B = B, .T1 = T1};
    return average_tokens(dlogp, token_kl, in, &a, norm);
}

// ---- exact sums for the proofs ---------------------------------------------------------------------------

// Expectation of the estimator over n outcomes with log-probabilities logp and logp_ref; also its variance
// and the probability that one sample comes out negative. sign -1 gives the formulas as D3 prints them.
static double kl_moments(double* variance, double* negative, const double* logp, const double* logp_ref,
                         int n, double sign, int estimator) {
    double mean = 0.0, square = 0.0, slope;
    *negative = 0.0;
    for (int i = 0; i < n; i++) {
        double p = exp(logp[i]), k = kl_estimate(&slope, sign * (logp[i] - logp_ref[i]), estimator);
        mean += p * k;
        square += p * k * k;
        *negative += k < 0.0 ? p : 0.0;
    }
    *variance = square - mean * mean;
    return mean;
}

static double exact_kl(const double* logp, const double* logp_ref, int n) { // sum p log(p/q), the definition
    double kl = 0.0;
    for (int i = 0; i < n; i++) kl += exp(logp[i]) * (logp[i] - logp_ref[i]);
    return kl;
}

// The ways to use an estimator, as data. What multiplies the score of one sample is, in the loss, the
// estimator's slope; in the reward, its value; and for k3 times the ratio pi/pi_sample both, by the product
// rule at ratio 1.
enum { KL_USES = 9, KL_K3_REWARD = 6 };
static const struct {
    const char* name;
    int estimator, uses_slope, uses_value;
    double sign;                               // -1: the formula as D3 prints it
} kl_uses[KL_USES] = {{"k1 in the loss", 1, 1, 0, 1.0},   {"k2 in the loss", 2, 1, 0, 1.0},
                      {"k3 in the loss", 3, 1, 0, 1.0},   {"k3 * ratio, loss", 3, 1, 1, 1.0},
                      {"k1 in the reward", 1, 0, 1, 1.0}, {"k2 in the reward", 2, 0, 1, 1.0},
                      {"k3 in the reward", 3, 0, 1, 1.0}, {"D3 k1, reward", 1, 0, 1, -1.0},
                      {"D3 k3, reward", 3, 0, 1, -1.0}};

static double kl_score_weight(double log_ratio, int use) {
    double slope, value = kl_estimate(&slope, kl_uses[use].sign * log_ratio, kl_uses[use].estimator);
    return kl_uses[use].uses_slope * slope + kl_uses[use].uses_value * value;
}

// Expected gradient by the n logits of a softmax: grad_j = sum_i p_i weight_i (1[i=j] - p_j).
static void softmax_score_sum(double* grad, const double* logp, const double* weight, int n) {
    for (int j = 0; j < n; j++) {
        grad[j] = 0.0;
        for (int i = 0; i < n; i++)
            grad[j] += exp(logp[i]) * weight[i] * ((i == j ? 1.0 : 0.0) - exp(logp[j]));
    }
}

// The gradient of KL itself, from its definition and the quotient rule (no scores): for the logits of a
// softmax, d/dlogit_j sum_i p_i log(p_i/q_i) = p_j (log(p_j/q_j) - KL), and for KL(q||p) it is p_j - q_j.
static void exact_kl_gradient(double* grad, double* grad_other, const double* logp, const double* logp_ref,
                              int n) {
    double kl = exact_kl(logp, logp_ref, n);
    for (int j = 0; j < n; j++) {
        grad[j] = exp(logp[j]) * (logp[j] - logp_ref[j] - kl);
        grad_other[j] = exp(logp[j]) - exp(logp_ref[j]);
    }
}

// The token reward that contains the penalty: r(s,a) - beta * log_ratio(s,a), one number per entry of the
// toy. With toy_solve it gives J = E[r] - beta KL and its exact gradient.
static void toy_penalized(double* out, const double* reward, const double* logp, const double* logp_ref,
                          double beta) {
    for (int e = 0; e < TOY_PARAMS; e++) out[e] = reward[e] - beta * (logp[e] - logp_ref[e]);
}

// pi*(y) = pi_ref(y) exp(r(y)/beta) / Z over the 27 answers. Returns log Z.
static double toy_optimum(double* p, const double* logp_ref, const double* reward, double beta) {
    double logit[TOY_ANSWERS], logp[TOY_ANSWERS];
    for (int y = 0; y < TOY_ANSWERS; y++)
        logit[y] = toy_sum_along(logp_ref, y) + toy_sum_along(reward, y) / beta;
    toy_log_softmax(logp, logit, TOY_ANSWERS);
    for (int y = 0; y < TOY_ANSWERS; y++) p[y] = exp(logp[y]);
    return logit[0] - logp[0];
}

static void toy_probabilities(double* p, const double* logp) {   // (39) log-probs -> (27) answers
    for (int y = 0; y < TOY_ANSWERS; y++) p[y] = exp(toy_sum_along(logp, y));
}

// Plain gradient ascent on the exact J from theta, until no component of the gradient exceeds `small`, which
// is looked at every hundred steps. Returns the number of steps.
static int toy_ascend(double* theta, const double* logp_ref, const double* reward, double beta, double rate,
                      double small, int most) {
    for (int step = 0; step < most; step++) {
        double logp[TOY_PARAMS], penalized[TOY_PARAMS], value[TOY_STATES], grad[TOY_PARAMS], largest = 0.0;
        toy_log_policy(logp, theta);
        toy_penalized(penalized, reward, logp, logp_ref, beta);
        toy_solve(value, grad, logp, penalized);
        for (int e = 0; e < TOY_PARAMS; e++) {
            theta[e] += rate * grad[e];
            largest = fabs(grad[e]) > largest ? fabs(grad[e]) : largest;
        }
        if (largest < small && step % 100 == 0) return step;
    }
    return most;
}

// ---- lesson 8 ------------------------------------------------------------------------------------------

static void five_way(double* logp, double* logp_ref, double drift) {   // drift 1: the example; 0: equal
    double policy[5], reference[5];
    toy_fill(policy, 5, 2, 1.5);
    toy_fill(reference, 5, 3, 1.5);
    for (int i = 0; i < 5; i++) policy[i] = reference[i] + drift * (policy[i] - reference[i]);
    toy_log_softmax(logp, policy, 5);
    toy_log_softmax(logp_ref, reference, 5);
}

static void lesson_8_estimators(void) {
    double logp[5], logp_ref[5], slope, variance, negative;
    five_way(logp, logp_ref, 1.0);
    printf("1. Five possible answers: the three estimators, by exact summation\n\n");
    printf("   L = log pi - log pi_ref. The columns \"D3\" have the signs as D3 prints them.\n\n");
    printf("   answer      pi  pi_ref        L       k1       k2       k3    D3 k1    D3 k3\n");
    for (int i = 0; i < 5; i++) {
        double L = logp[i] - logp_ref[i];
        printf("   %6d  %6.4f  %6.4f  %7.4f", i + 1, exp(logp[i]), exp(logp_ref[i]), L);
        for (int k = 1; k <= 3; k++) printf("  %7.4f", kl_estimate(&slope, L, k));
        printf("  %7.4f  %7.4f\n", kl_estimate(&slope, -L, 1), kl_estimate(&slope, -L, 3));
    }
    printf("\n   Over samples from pi; the exact KL(pi||pi_ref) is %.4f nats:\n\n",
           exact_kl(logp, logp_ref, 5));
    printf("   estimator    mean     mean - exact    variance    samples below 0\n");
    for (int i = 0; i < 5; i++) {
        static const char* const names[] = {"k1", "k2", "k3", "D3 k1", "D3 k3"};
        static const int estimators[] = {1, 2, 3, 1, 3};
        double mean = kl_moments(&variance, &negative, logp, logp_ref, 5, i < 3 ? 1.0 : -1.0, estimators[i]);
        double miss = mean - exact_kl(logp, logp_ref, 5);
        printf("   %-9s %7.4f  %14.4f  %10.4f  %16.1f%%\n", names[i], mean, fabs(miss) < 1e-12 ? 0.0 : miss,
               variance, 100.0 * negative);
    }
    double other = exact_kl(logp_ref, logp, 5);
    double printed = kl_moments(&variance, &negative, logp_ref, logp, 5, 1.0, 3);
    printf("\n   With samples from pi_ref, D3's k3 averages %.4f = KL(pi_ref||pi) = %.4f:\n"
           "   the printed line belongs to samples from the other distribution.\n\n", printed, other);
}

static void lesson_8_drift(void) {
    const double drifts[] = {0.1, 0.5, 1.0, 2.0, 3.0, 4.0};
    printf("2. The same five answers at different distances from the reference: drift times\n"
           "   the difference of the logits of part 1\n\n");
    printf("   drift   exact KL     mean k2   mean D3 k3   variance k1   variance k3\n");
    for (int i = 0; i < 6; i++) {
        double logp[5], logp_ref[5], v1, v2, v3, negative;
        five_way(logp, logp_ref, drifts[i]);
        kl_moments(&v1, &negative, logp, logp_ref, 5, 1.0, 1);
        double k2 = kl_moments(&v2, &negative, logp, logp_ref, 5, 1.0, 2);
        double printed = kl_moments(&v2, &negative, logp, logp_ref, 5, -1.0, 3);
        kl_moments(&v3, &negative, logp, logp_ref, 5, 1.0, 3);
        printf("   %5.1f  %9.4g  %10.4g  %11.4g  %12.4g  %12.4g\n", drifts[i], exact_kl(logp, logp_ref, 5),
               k2, printed, v1, v3);
    }
    printf("\n   Near the reference k3 is far calmer than k1. Far away it is the wilder one:\n"
           "   the policy has dropped answers that pi_ref likes; pi_ref/pi is huge there.\n\n");
}

static void lesson_8_gradients(void) {
    double logp[5], logp_ref[5], exact[5], other[5], grad[5], weight[5];
    five_way(logp, logp_ref, 1.0);
    exact_kl_gradient(exact, other, logp, logp_ref, 5);
    printf("3. Expected gradients by the five logits: the estimate as loss or as reward\n\n");
    printf("   %-18s  logit 1  logit 2  logit 3  logit 4  logit 5\n", "");
    printf("   %-18s", "exact, KL(pi||ref)");
    for (int j = 0; j < 5; j++) printf("  %7.4f", exact[j]);
    printf("\n   %-18s", "exact, KL(ref||pi)");
    for (int j = 0; j < 5; j++) printf("  %7.4f", other[j]);
    printf("\n");
    for (int use = 0; use < KL_USES; use++) {
        for (int i = 0; i < 5; i++) weight[i] = kl_score_weight(logp[i] - logp_ref[i], use);
        softmax_score_sum(grad, logp, weight, 5);
        printf("   %-18s", kl_uses[use].name);
        for (int j = 0; j < 5; j++) printf("  %7.4f", fabs(grad[j]) < 5e-5 ? 0.0 : grad[j]);
        printf("%s\n", toy_largest_difference(grad, exact, 5) < 1e-12   ? "  exact"
                       : toy_largest_difference(grad, other, 5) < 1e-12 ? "  other KL" : "");
    }
    printf("\n   k1 as a loss pushes nowhere. k3 as a loss is exact for the OTHER KL. k3 as a\n"
           "   reward is the difference of the two, and near the reference nothing is left:\n\n"
           "   drift   |gradient of k3 in the reward| / |exact gradient|\n");
    for (int d = 0; d < 3; d++) {
        const double drifts[] = {1.0, 0.1, 0.01};
        double left[5];
        five_way(logp, logp_ref, drifts[d]);
        exact_kl_gradient(exact, other, logp, logp_ref, 5);
        for (int i = 0; i < 5; i++) weight[i] = kl_score_weight(logp[i] - logp_ref[i], KL_K3_REWARD);
        softmax_score_sum(grad, logp, weight, 5);
        for (int j = 0; j < 5; j++) left[j] = grad[j] + exact[j];   // so that left - exact = grad
        printf("   %5g   %8.4f\n", drifts[d], toy_relative_error(left, exact, 5));
    }
    printf("\n");
}

// The same on the 27 answers: with the log-ratio of the whole answer, and summed over its tokens.
static void lesson_8_toy_gradients(const double* logp, const double* logp_ref) {
    double value[TOY_STATES], exact[TOY_PARAMS], grad[TOY_PARAMS], ratio[TOY_PARAMS], table[TOY_PARAMS];
    for (int e = 0; e < TOY_PARAMS; e++) ratio[e] = logp[e] - logp_ref[e];
    toy_solve(value, exact, logp, ratio); // KL is the expected sum of log-ratios, so Bellman's way applies
    printf("   Distance of the expected gradient from the exact one, |g - exact| / |exact|:\n\n");
    printf("   use                 whole answer    token by token\n");
    for (int use = 0; use < KL_USES; use++) {
        char a[16], b[16];
        double weight[TOY_ANSWERS];
        for (int y = 0; y < TOY_ANSWERS; y++)
            weight[y] = exp(toy_sum_along(logp, y)) * kl_score_weight(toy_sum_along(ratio, y), use);
        toy_answer_gradient(grad, logp, weight);
        toy_difference_text(a, toy_relative_error(grad, exact, TOY_PARAMS), 1e-12);
        for (int e = 0; e < TOY_PARAMS; e++) table[e] = kl_score_weight(ratio[e], use);
        toy_rollout_gradient(grad, logp, table, NULL, 1.0,
                             kl_uses[use].uses_slope ? CREDIT_OWN : CREDIT_TO_GO);
        toy_difference_text(b, toy_relative_error(grad, exact, TOY_PARAMS), 1e-12);
        printf("   %-18s  %12s  %16s\n", kl_uses[use].name, a, b);
    }
    printf("\n   1 means: as far off as no gradient at all. Token by token, a loss term does\n"
           "   not see where its token leads. The reward form does, through the return.\n\n");
}

// The same estimators on the 27 answers: with the log-ratio of the whole answer, and summed over its tokens.
static void lesson_8_toy(const double* logp, const double* logp_ref) {
    double value[TOY_STATES], grad[TOY_PARAMS], ratio[TOY_PARAMS], table[TOY_PARAMS], slope;
    double all[TOY_ANSWERS], all_ref[TOY_ANSWERS], variance, negative;
    for (int e = 0; e < TOY_PARAMS; e++) ratio[e] = logp[e] - logp_ref[e];
    for (int y = 0; y < TOY_ANSWERS; y++) {
        all[y] = toy_sum_along(logp, y);
        all_ref[y] = toy_sum_along(logp_ref, y);
    }
    printf("4. The 27-answer model of chapter 4: whole answers against sums over tokens\n\n");
    printf("   exact KL, 27 answers         %.12f\n", exact_kl(all, all_ref, TOY_ANSWERS));
    printf("   exact KL, token by token     %.12f   (Bellman)\n\n", toy_solve(value, grad, logp, ratio));
    printf("              log-ratio of the answer         summed over the tokens\n");
    printf("   estimator   mean  variance  below 0         mean  variance  below 0\n");
    for (int k = 1; k <= 3; k++) {
        double mean = kl_moments(&variance, &negative, all, all_ref, TOY_ANSWERS, 1.0, k);
        printf("   k%d       %7.4f  %8.4f  %6.1f%%", k, mean, variance, 100.0 * negative);
        double token_mean = 0.0, square = 0.0, below = 0.0;
        for (int e = 0; e < TOY_PARAMS; e++) table[e] = kl_estimate(&slope, ratio[e], k);
        for (int y = 0; y < TOY_ANSWERS; y++) {
            double p = exp(all[y]), sum = toy_sum_along(table, y);
            token_mean += p * sum;
            square += p * sum * sum;
            below += sum < 0.0 ? p : 0.0;
        }
        printf("      %7.4f  %8.4f  %6.1f%%\n", token_mean, square - token_mean * token_mean, 100.0 * below);
    }
    printf("\n");
    lesson_8_toy_gradients(logp, logp_ref);
}

static void lesson_8_sum_or_mean(void) {
    enum { LONGEST = 1000 };
    const int lengths[] = {10, 100, 1000};
    float logp[LONGEST], logp_ref[LONGEST], dlogp[LONGEST];
    int mask[LONGEST];
    const double beta = 0.05;
    printf("5. Sum over the answer or mean per token, beta = %.2f\n\n", beta);
    printf("   Log-ratios +0.3 and -0.3 in turn. What a reward of at most 1 loses:\n\n");
    printf("   tokens   k3 per token   sum over answer   beta * sum   beta * mean\n");
    for (int i = 0; i < 3; i++) {
        for (int t = 0; t < LONGEST; t++) {
            logp[t] = t % 2 ? -1.3f : -1.0f;
            logp_ref[t] = t % 2 ? -1.0f : -1.3f;
            mask[t] = 1;
        }
        double sum = loss_kl(dlogp, logp, logp_ref, mask, 1, lengths[i], NORM_SEQUENCE_SUM, 3);
        double mean = loss_kl(dlogp, logp, logp_ref, mask, 1, lengths[i], NORM_SEQUENCE_MEAN, 3);
        printf("   %6d  %13.4f  %16.4f  %11.4f  %12.4f\n", lengths[i], mean, sum, beta * sum, beta * mean);
    }
    printf("\n   The objective has the sum. With the mean, drifting costs a long answer no\n"
           "   more than a short one: an answer of n tokens pays at the price beta / n.\n\n");
}

static void lesson_8_optimum(const double* logp_ref, const double* theta_ref) {
    const double betas[] = {4.0, 1.0, 0.5, 0.25};
    double reward[TOY_PARAMS];
    toy_rewards(reward);
    printf("6. Gradient ascent on the exact objective, from pi_ref\n\n");
    printf("   beta     E[r]       KL        J   beta log Z    steps   max |pi - pi*|\n");
    char text[16];
    for (int i = 0; i < 4; i++) {
        double theta[TOY_PARAMS], logp[TOY_PARAMS], penalized[TOY_PARAMS], value[TOY_STATES],
            grad[TOY_PARAMS];
        double p[TOY_ANSWERS], best[TOY_ANSWERS];
        memcpy(theta, theta_ref, sizeof theta);
        int steps = toy_ascend(theta, logp_ref, reward, betas[i], 2.0 / (0.3 + betas[i]), 1e-10, 50000);
        toy_log_policy(logp, theta);
        double expected = toy_solve(value, grad, logp, reward);
        toy_penalized(penalized, reward, logp, logp_ref, betas[i]);
        double J = toy_solve(value, grad, logp, penalized);
        double log_Z = toy_optimum(best, logp_ref, reward, betas[i]);
        toy_probabilities(p, logp);
        printf("   %4.2f  %7.4f  %7.4f  %7.4f  %11.4f  %7d  %15s\n", betas[i], expected,
               (expected - J) / betas[i], J, betas[i] * log_Z, steps,
               toy_difference_text(text, toy_largest_difference(p, best, TOY_ANSWERS), 1e-9));
    }
    printf("\n   The policy arrives at pi_ref exp(r/beta)/Z, and J at its peak, beta log Z. A\n"
           "   smaller beta buys reward with KL. Every answer here has three tokens, so the\n"
           "   mean KL per token at beta is the sum at beta/3: another policy, not a detail.\n\n");
}

static void lesson_8_digits(void) {
    const float drifts[] = {1e-1f, 1e-2f, 1e-3f, 1e-4f, 1e-5f};
    printf("7. k3 of a small log-ratio x: the digits that a float loses\n\n");
    printf("            x   in floats, plainly       kl_k3   x^2/2 - x^3/6 + x^4/24\n");
    for (int i = 0; i < 5; i++) {
        const float logp[1] = {drifts[i]}, logp_ref[1] = {0.0f};
        float k3;
        double x = drifts[i];
        float power = (float)exp(-x), plain = power - 1.0f;
        plain += drifts[i];
        kl_k3(&k3, logp, logp_ref, 1);
        printf("   %10.0e  %19.3e  %10.3e  %23.3e\n", x, (double)plain, (double)k3,
               x * x / 2 - x * x * x / 6 + x * x * x * x / 24);
    }
    printf("\n   After a small step all log-ratios are small. exp(-x) - 1 + x done plainly in\n"
           "   floats returns noise. kl_k3 works in double precision and with expm1.\n");
}

static void lesson_8(void) {
    double theta[TOY_PARAMS], theta_ref[TOY_PARAMS], logp[TOY_PARAMS], logp_ref[TOY_PARAMS];
    toy_fill(theta, TOY_PARAMS, 1, 1.0);
    toy_fill(theta_ref, TOY_PARAMS, 2, 1.0);
    toy_log_policy(logp, theta);
    toy_log_policy(logp_ref, theta_ref);
    printf("LESSON 8. The objective: reward minus beta KL (D3 section 5)\n\n");
    lesson_8_estimators();
    lesson_8_drift();
    lesson_8_gradients();
    lesson_8_toy(logp, logp_ref);
    lesson_8_sum_or_mean();
    lesson_8_optimum(logp_ref, theta_ref);
    lesson_8_digits();
}

/* ==========================================================================================================
 * CHAPTER 9. Losses                                                            (D3 section 6, D1 on the loss)
 *
 * The question. We have log-probabilities and a judgement: an advantage, a demonstration or a preference.
 * What number do we minimize, and what does its gradient do to each token?
 *
 * The idea. Every loss here ends in one number per token, d(loss)/d(logp): negative means "make this token
 * more likely", positive "less likely", 0 "leave it alone". The chain rule through log-softmax and the
 * network does the rest. Read that number and you have understood the loss.
 *
 * Policy gradient (REINFORCE; D1, nanochat)
 *     L = - sum_t A log pi(y_t | x, y_<t) / (what we average over)             d/dlogp = -A * weight
 *   The value of this L means nothing, it can go up while the policy improves. Only its gradient is used.
 *   D1's loss = -(advantage * sum of logp) / (number of valid tokens) is NORM_TOKEN_MEAN over the group of
 *   answers to one question.
 *
 * Clipping (PPO)
 *     rho = pi/pi_old = exp(logp - logp_old)
 *     L = - min( rho A, clip(rho, 1 - clip_low, 1 + clip_high) A )             d/dlogp = -rho A, 0 if clipped
 *   For taking several steps on rollouts of an older policy. The minimum is pessimistic: it stops paying
 *   once a token has moved far enough in the direction that A asks for, and never stops correcting a token
 *   that moved the wrong way. On-policy (rho = 1) its gradient is the policy gradient: D1 needs no clip.
 *
 * Two relatives of clipping, for the same purpose
 *     GSPO   s = exp( mean over the answer's tokens of logp - logp_old ), then clipped like rho
 *            The reward belongs to the whole answer; so does the ratio, and an answer is clipped as a whole.
 *     CISPO  L = - stop(clip(rho)) A logp                                      d/dlogp = -clip(rho) A
 *            stop: held constant. Clipping silences exactly the tokens that change most, often the rare
 *            words at which an answer turns. CISPO bounds their weight and lets them speak.
 *
 * The value model (PPO) foretells the reward at every token, so that GAE (chapters 2 and 7) can tell at which
 * token things went better or worse than expected. It learns by squared error from what came after:
 *     L = 1/2 (V - target)^2,  target = A + V_old                              d/dV = V - target
 *
 * Supervised fine-tuning (SFT, instruction tuning)
 *     L_SFT(theta) = - E over (x, y*) ~ D of [ sum_t log pi_theta(y*_t | x, y*_<t) ]
 *   y* is given, not sampled. It is the policy gradient with advantage 1 everywhere: praise for each token of
 *   somebody else's answer, and never a reproach. We average over tokens, as everyone does.
 *
 * Preferences: Bradley-Terry and the reward model (RLHF)
 *     y_w is the answer that was preferred, y_l the one that lost; phi are the reward model's parameters
 *     P(y_w beats y_l | x) = exp(r_w) / (exp(r_w) + exp(r_l)) = sigma( r(x,y_w) - r(x,y_l) ),
 *     sigma(z) = 1 / (1 + exp(-z))
 *     L_RM(phi) = - E[ log sigma( r_phi(x,y_w) - r_phi(x,y_l) ) ]      d/dr_w = -(1 - P),  d/dr_l = +(1 - P)
 *   Only differences count: r + constant has the same loss.
 *
 * Three ways to use a reward: RL (chapters 7 to 10), and
 *   Rejection sampling, best of N
 *     y+ = the y_i with the largest r(x, y_i),  i = 1..N,  y_i ~ pi_ref(.|x)
 *     L_RS(theta) = - E over x of [ log pi_theta(y+|x) ]
 *   DPO (direct preference optimization)
 *     Chapter 8's optimum pi* = pi_ref exp(r/beta)/Z, solved for r:  r = beta log(pi* / pi_ref) + beta log Z.
 *     Put into Bradley-Terry, Z(x) is in both rewards and cancels, and the policy itself is the reward model:
 *         L_DPO(theta) = - E[ log sigma( beta log(pi(y_w|x) / pi_ref(y_w|x))
 *                                      - beta log(pi(y_l|x) / pi_ref(y_l|x)) ) ]
 *     beta log(pi/pi_ref) is called the implicit reward. Log-probs of whole answers go in, sums over tokens.
 *
 * RLVR (verifiable rewards): the policy gradient again, with a program in place of the judge,
 *     r(x,y) = 1 if verify(x, y) else 0,    J = E over x ~ D, y ~ pi of [ r(x,y) ] - beta KL(pi || pi_ref)
 *
 * Traps.
 *   - Three ways to average make three different trainings (chapter 8, average_tokens). The lesson shows it.
 *   - D3 says that RL, rejection sampling and DPO optimize the same objective. The lesson checks it on the
 *     27 answers. DPO reaches pi* from preferences alone, given all pairs and a judge as in Bradley-Terry.
 *     Best-of-N is EXACTLY pi_ref exp(r/beta)/Z when the reward has two values, with a beta that depends on N
 *     and on how often pi_ref passes: another one for every question. With more values it is another family
 *     of policies.
 *   - DPO's gradient vanishes on a pair that it already ranks well, and it does not fix the level: both
 *     log-probs may fall, as long as the rejected one falls more.
 * ======================================================================================================== */

static double token_policy_gradient(double* slope, const TokenInput* in) {
    *slope = -in->advantage;
    return -in->advantage * in->logp;
}

// The ratio pi/pi_old held between the bounds; also the ratio itself and its slope.
static double clipped_ratio(double* ratio, double* ratio_slope, const TokenInput* in) {
    double low = 1.0 - in->clip_low, high = 1.0 + in->clip_high;
    *ratio = bounded_exp(ratio_slope, in->log_ratio);
    return *ratio < low ? low : *ratio > high ? high : *ratio;
}

static double token_clip(double* slope, const TokenInput* in) {
    double ratio, ratio_slope, clipped = clipped_ratio(&ratio, &ratio_slope, in);
    if (clipped * in->advantage < ratio * in->advantage) {   // the clipped value is the worse one: a constant
        *slope = 0.0;
        return -clipped * in->advantage;
    }
    *slope = -ratio_slope * in->advantage;
    return -ratio * in->advantage;
}

static double token_cispo(double* slope, const TokenInput* in) {
    double ratio, ratio_slope, clipped = clipped_ratio(&ratio, &ratio_slope, in);
    *slope = -clipped * in->advantage;
    return -clipped * in->advantage * in->logp;
}

// Policy gradient (REINFORCE). Advantages are constants: no gradient flows into them.
//   dlogp (B,T1)   out: d(loss)/d(logp) = -adv * weight, exactly 0 where mask is 0
//   logp (B,T1)    log-probabilities of the tokens, nats;  mask (B,T1): 1 = the model sampled this token
//   adv (B)        one advantage per sequence, shared by its tokens
// Returns the loss, whose value has no meaning of its own. Empty mask: 0 (see average_tokens, also for norm).
// Williams (1992); Sutton and Barto, section 13.3; D1.
double loss_policy_gradient(float* dlogp, const float* logp, const float* adv, const int* mask, int B, int T1,
                            int norm) {
    TokenInput in = {0};
    LossArrays a = {.logp = logp, .advantage = adv, .mask = mask, .B = B, .T1 = T1};
    return average_tokens(dlogp, token_policy_gradient, in, &a, norm);
}

// What the three losses with a clipped ratio have in common.
static double ratio_loss(float* dlogp, TokenLoss token_loss, const float* logp, const float* logp_old,
                         const float* adv, const int* mask, int B, int T1, float clip_low, float clip_high,
                         int sequence_ratio, int norm) {
    TokenInput in = {.clip_low = clip_low, .clip_high = clip_high};
    LossArrays a = {.logp = logp, .logp_other = logp_old, .advantage = adv, .mask = mask, .B = B, .T1 = T1,
                    .sequence_ratio = sequence_ratio};
    return average_tokens(dlogp, token_loss, in, &a, norm);
}

// PPO's clipped loss with separate bounds: the ratio is used between 1 - clip_low and 1 + clip_high.
//   logp_old (B,T1)       log-probabilities recorded by the policy that sampled, nats; the rest as above
//   clip_low, clip_high   for example 0.2 and 0.2 (PPO), 0.2 and 0.28 (DAPO)
// Exactly on a bound the gradient is the unclipped one. Log-ratios above 80: see bounded_exp, finite.
// Schulman et al. (2017), equation 7; Yu et al. (2025) for two bounds.
double loss_clip(float* dlogp, const float* logp, const float* logp_old, const float* adv, const int* mask,
                 int B, int T1, float clip_low, float clip_high, int norm) {
    return ratio_loss(dlogp, token_clip, logp, logp_old, adv, mask, B, T1, clip_low, clip_high, 0, norm);
}

// GSPO: PPO's clipped loss with one ratio for a whole answer, s = exp(mean over its tokens of logp -
// logp_old). Arguments as for loss_clip; the average is NORM_SEQUENCE_MEAN. Each token of an answer gets the
// same derivative, -s A / (B |y|), or 0 when the answer is clipped: ds/dlogp_t = s / |y|. For answers of one
// token it is loss_clip. Zheng et al. (2025), equations 5 and 7.
double loss_gspo(float* dlogp, const float* logp, const float* logp_old, const float* adv, const int* mask,
                 int B, int T1, float clip_low, float clip_high) {
    return ratio_loss(dlogp, token_clip, logp, logp_old, adv, mask, B, T1, clip_low, clip_high, 1,
                      NORM_SEQUENCE_MEAN);
}

// CISPO: the policy gradient, weighted by the clipped ratio, which is held constant. Arguments as for
// loss_clip. The value has no meaning of its own; no token's gradient is ever switched off. MiniMax (2025),
// equation 4.
double loss_cispo(float* dlogp, const float* logp, const float* logp_old, const float* adv, const int* mask,
                  int B, int T1, float clip_low, float clip_high, int norm) {
    return ratio_loss(dlogp, token_cispo, logp, logp_old, adv, mask, B, T1, clip_low, clip_high, 0, norm);
}

// Averaged like the losses of the policy, so it comes in their words: the value is "logp", the older value
// "logp_other", the target "advantage", the bound "clip_high".
static double token_value(double* slope, const TokenInput* in) {
    double value = in->logp, old = value - in->log_ratio, target = in->advantage, step = in->log_ratio;
    double bound = in->clip_high, held = step > bound ? old + bound : step < -bound ? old - bound : value;
    double plain = 0.5 * (value - target) * (value - target);
    double clipped = 0.5 * (held - target) * (held - target);
    *slope = bound > 0.0 && clipped > plain ? 0.0 : value - target;
    return bound > 0.0 && clipped > plain ? clipped : plain;
}

// PPO's value loss: half the squared error of the value, made pessimistic as the policy's loss is: the larger
// of the error of V and that of V held within `clip` of its older self. clip <= 0: the plain squared error.
//   dvalue (B,T1)              out: d(loss)/d(value), exactly 0 where mask is 0
//   value, value_old, target   (B,T1) each, in units of reward; target: the return that V should foretell
// Schulman's PPO code (OpenAI baselines); Ouyang et al. (2022) for language models.
double loss_value(float* dvalue, const float* value, const float* value_old, const float* target,
                  const int* mask, int B, int T1, float clip, int norm) {
    TokenInput in = {.clip_high = clip};
    LossArrays a = {.logp = value, .logp_other = value_old, .advantage = target, .mask = mask, .B = B,
                    .T1 = T1, .per_token = 1};
    return average_tokens(dvalue, token_value, in, &a, norm);
}

// Supervised fine-tuning: mean negative log-likelihood per demonstrated token, nats. It is the policy
// gradient with advantage 1. mask (B,T1): 1 = a token of the answer to imitate. Empty mask: both are 0.
double loss_sft(float* dlogp, const float* logp, const int* mask, int B, int T1) {
    TokenInput in = {0};
    LossArrays a = {.logp = logp, .mask = mask, .B = B, .T1 = T1};
    return average_tokens(dlogp, token_policy_gradient, in, &a, NORM_TOKEN_MEAN);
}

// -log sigma(margin) and its derivative -sigma(-margin). log1p(exp(-|margin|)) can neither overflow nor take
// the log of 0, so a margin of -800 costs 800 and not infinity.
static double bradley_terry(double* slope, double margin) {
    *slope = -sigmoid(-margin);
    return (margin > 0.0 ? 0.0 : -margin) + log1p(exp(-fabs(margin)));
}

// Reward model on one pair: -log P(chosen beats rejected) under Bradley-Terry.
//   dchosen, drejected   out: d(loss)/d(score), one float each, opposite and equal
//   chosen, rejected     the two scores r(x,y_w), r(x,y_l)
// Equal scores give log 2 = 0.6931. Finite for all finite scores. Bradley and Terry (1952); Ouyang et al.
// (2022).
double loss_reward_model(float* dchosen, float* drejected, float chosen, float rejected) {
    double slope, loss = bradley_terry(&slope, (double)chosen - rejected);
    *dchosen = (float)slope;
    *drejected = (float)-slope;
    return loss;
}

// DPO on one pair: the reward model's loss on the implicit rewards beta log(pi/pi_ref).
//   dchosen, drejected   out: d(loss)/d(log-prob of the answer under the policy), one float each
//   chosen, rejected     log pi(y|x) of the two answers, summed over tokens, nats;  ref_...: under pi_ref
//   beta                 as in chapter 8; 0 gives loss log 2 and gradient 0
// Rafailov et al. (2023), equation 7.
double loss_dpo(float* dchosen, float* drejected, float chosen, float rejected, float ref_chosen,
                float ref_rejected, float beta) {
    double margin = beta * (((double)chosen - ref_chosen) - ((double)rejected - ref_rejected));
    double slope, loss = bradley_terry(&slope, margin);
    *dchosen = (float)(beta * slope);
    *drejected = (float)(-beta * slope);
    return loss;
}

// Rejection sampling's choice: the index of the largest reward, the first one among equals. A NaN never wins.
// -1 when there is nothing to choose. The chosen answer then goes to loss_sft.
static int best_of_n(const float* reward, int N) {
    int best = -1;
    for (int i = 0; i < N; i++)
        if (!isnan(reward[i]) && (best < 0 || reward[i] > reward[best])) best = i;
    return best;
}

// ---- exact sums for the proofs ---------------------------------------------------------------------------

// The distribution of the best of N answers drawn from p_ref, exactly. All N are at or below a reward level
// with probability (at or below)^N, strictly below it with (below)^N. The difference belongs to the answers
// of the level, in proportion to p_ref.
static void toy_best_of_n(double* p, const double* p_ref, const double* reward, int N) {
    for (int y = 0; y < TOY_ANSWERS; y++) {
        double below = 0.0, level = 0.0;
        for (int i = 0; i < TOY_ANSWERS; i++) {
            if (reward[i] < reward[y]) below += p_ref[i];
            if (reward[i] == reward[y]) level += p_ref[i];
        }
        p[y] = (pow(below + level, N) - pow(below, N)) * p_ref[y] / level;
    }
}

// Expected loss_dpo and its gradient by the 39 logits, over all pairs of different answers: a pair is drawn
// from pi_ref, and a judge who knows the reward prefers i to j with probability sigma(r_i - r_j).
static double toy_dpo_gradient(double* grad, const double* logp, const double* logp_ref, const double* reward,
                               double beta) {
    double weight[TOY_ANSWERS] = {0}, loss = 0.0, total = 0.0, p[TOY_ANSWERS];
    float all[TOY_ANSWERS], all_ref[TOY_ANSWERS];
    for (int y = 0; y < TOY_ANSWERS; y++) {
        all[y] = (float)toy_sum_along(logp, y);
        all_ref[y] = (float)toy_sum_along(logp_ref, y);
        p[y] = exp(toy_sum_along(logp_ref, y));
    }
    for (int i = 0; i < TOY_ANSWERS; i++) {
        for (int j = 0; j < TOY_ANSWERS; j++) {
            if (i == j) continue;
            double chance = p[i] * p[j] * sigmoid(reward[i] - reward[j]);
            float dchosen, drejected;
            loss += chance * loss_dpo(&dchosen, &drejected, all[i], all[j], all_ref[i], all_ref[j],
                                      (float)beta);
            weight[i] += chance * dchosen;
            weight[j] += chance * drejected;
            total += chance;
        }
    }
    for (int y = 0; y < TOY_ANSWERS; y++) weight[y] /= total;
    toy_answer_gradient(grad, logp, weight);
    return loss / total;
}

// Gradient descent with momentum 0.9 on the expected DPO loss; its curvature goes with beta^2.
static double toy_train_dpo(double* theta, const double* logp_ref, const double* reward, double beta,
                            int steps) {
    double velocity[TOY_PARAMS] = {0}, loss = 0.0;
    for (int step = 0; step < steps; step++) {
        double logp[TOY_PARAMS], grad[TOY_PARAMS];
        toy_log_policy(logp, theta);
        loss = toy_dpo_gradient(grad, logp, logp_ref, reward, beta);
        for (int e = 0; e < TOY_PARAMS; e++) {
            velocity[e] = 0.9 * velocity[e] - 3.0 / (beta * beta) * grad[e];
            theta[e] += velocity[e];
        }
    }
    return loss;
}

// ---- lesson 9 ------------------------------------------------------------------------------------------

static void lesson_9_policy_gradient(void) {
    enum { B = 2, T1 = 4 };
    const float logp[B * T1] = {-0.5f, -1.0f, -1.5f, -9.0f, -2.0f, -9.0f, -9.0f, -9.0f};
    const float adv[B] = {1.0f, -1.0f};
    const int mask[B * T1] = {1, 1, 1, 0, 1, 0, 0, 0};
    const char* names[] = {"token mean", "sequence mean", "sequence sum"};
    float dlogp[B * T1];
    printf("1. Policy gradient under three normalizations\n\n");
    printf("   answer 1: logp %.1f %.1f %.1f, sum S1 = %.1f, advantage A1 = %+.0f\n", logp[0], logp[1],
           logp[2], logp[0] + logp[1] + logp[2], adv[0]);
    printf("   answer 2: logp %.1f,           sum S2 = %.1f, advantage A2 = %+.0f\n\n", logp[T1], logp[T1],
           adv[1]);
    printf("   token mean     -(A1 S1 + A2 S2) / 4\n"
           "   sequence mean  -(A1 S1 / 3 + A2 S2 / 1) / 2\n"
           "   sequence sum   -(A1 S1 + A2 S2) / 2\n\n");
    printf("                             d(loss)/d(logp)\n");
    printf("   normalization     loss    answer 1                   answer 2    masked\n");
    for (int norm = 0; norm < 3; norm++) {
        double loss = loss_policy_gradient(dlogp, logp, adv, mask, B, T1, norm);
        printf("   %-14s  %7.4f   %7.4f  %7.4f  %7.4f    %7.4f   %7.4f\n", names[norm], loss, dlogp[0],
               dlogp[1], dlogp[2], dlogp[T1], dlogp[T1 + 1]);
    }
    printf("\n   Same data, three gradients. The sequence mean gives each token of the long\n"
           "   answer a third of the weight of the short answer's token; the others do not.\n"
           "   nanochat is the first line, over the answers to one question.\n\n");
}

static void lesson_9_clip(void) {
    const double ratios[] = {0.5, 1.0, 1.5};
    const float low = 0.2f, high = 0.28f;
    const int mask[1] = {1};
    printf("2. Clipping to [%.2f, %.2f]: sign of the advantage x side of the ratio\n\n", 1.0 - low,
           1.0 + high);
    printf("   advantage   ratio   ratio*A   clipped*A     loss   d/dlogp\n");
    for (int sign = 1; sign >= -1; sign -= 2) {
        for (int i = 0; i < 3; i++) {
            float dlogp[1], logp_old[1] = {-2.0f}, adv[1] = {(float)sign};
            float logp[1] = {(float)(-2.0 + log(ratios[i]))};
            double loss = loss_clip(dlogp, logp, logp_old, adv, mask, 1, 1, low, high, NORM_TOKEN_MEAN);
            double clipped = ratios[i] < 1.0 - low    ? 1.0 - low
                             : ratios[i] > 1.0 + high ? 1.0 + high
                                                      : ratios[i];
            printf("   %9d  %6.2f  %8.2f  %10.2f  %7.2f  %8.2f   %s\n", sign, ratios[i], ratios[i] * sign,
                   clipped * sign, loss, (double)dlogp[0],
                   ratios[i] == 1.0 ? "on-policy: plain"
                   : dlogp[0] == 0.0f ? "far enough: rest" : "wrong way: push");
        }
    }
    printf("\n   The loss is minus the smaller of the two products.\n\n");
}

static void lesson_9_ratios(void) {
    enum { T1 = 3 };
    const float drift[T1] = {0.5f, 0.0f, -0.1f}, logp_old[T1] = {-2.0f, -1.0f, -0.5f}, low = 0.2f,
                high = 0.2f;
    const int mask[T1] = {1, 1, 1};
    float logp[T1], d[3][T1];
    double sum = 0.0;
    for (int t = 0; t < T1; t++) logp[t] = logp_old[t] + drift[t], sum += drift[t];
    printf("   An answer of three tokens that an earlier step has moved; bounds %g\n\n",
           (double)low);
    printf("   ratio of each token     %7.4f  %7.4f  %7.4f\n", exp(drift[0]), exp(drift[1]), exp(drift[2]));
    printf("   GSPO: exp(mean log)     %7.4f, for all of them\n\n", exp(sum / T1));
    printf("   A    d/dlogp * 3 of the token clip       GSPO                    CISPO\n");
    for (int sign = 1; sign >= -1; sign -= 2) {
        const float adv[1] = {(float)sign};
        loss_clip(d[0], logp, logp_old, adv, mask, 1, T1, low, high, NORM_SEQUENCE_MEAN);
        loss_gspo(d[1], logp, logp_old, adv, mask, 1, T1, low, high);
        loss_cispo(d[2], logp, logp_old, adv, mask, 1, T1, low, high, NORM_SEQUENCE_MEAN);
        printf("  %+d   ", sign);
        for (int i = 0; i < 3; i++) {
            for (int t = 0; t < T1; t++) printf("%7.3f", (double)d[i][t] * T1);
            printf(i < 2 ? "   " : "\n");
        }
    }
    printf("\n   At A = +1 the clip has silenced the first token, the one that moved most.\n"
           "   CISPO bounds its weight and keeps it. For GSPO the answer as a whole has not\n"
           "   moved enough.\n\n");

    const float value_old[2] = {0.3f, 0.3f}, value[2] = {0.6f, 0.1f}, target[2] = {1.0f, 1.0f};
    const int both[2] = {1, 1};
    float dvalue[2];
    for (int clipped = 0; clipped < 2; clipped++) {
        double loss = loss_value(dvalue, value, value_old, target, both, 1, 2, clipped ? 0.2f : 0.0f,
                                 NORM_SEQUENCE_SUM);
        printf("   V %.1f and %.1f, before %.1f, target %.0f, %s: loss %.3f, d/dV %6.3f %6.3f\n",
               (double)value[0], (double)value[1], (double)value_old[0], (double)target[0],
               clipped ? "clip 0.2" : "no clip ", loss, (double)dvalue[0], (double)dvalue[1]);
    }
    printf("   The clip rests where the value has moved far enough towards its target.\n\n");
}

static void lesson_9_sft(void) {
    enum { T1 = 4 };
    const float logp[T1] = {-9.0f, -0.5f, -1.0f, -1.5f};
    const int mask[T1] = {0, 1, 1, 1};
    float dlogp[T1];
    double loss = loss_sft(dlogp, logp, mask, 1, T1);
    printf("3. SFT on one demonstration of three tokens (the first entry is prompt, mask 0)\n\n");
    printf("   logp    ");
    for (int t = 0; t < T1; t++) printf(" %7.4f", logp[t]);
    printf("\n   d/dlogp ");
    for (int t = 0; t < T1; t++) printf(" %7.4f", dlogp[t]);
    printf("\n   loss = -(sum of the three) / 3 = %.4f nats per token, perplexity %.4f\n", loss, exp(loss));
    printf("\n   Never positive: SFT says what to do and has no way to say what not to do.\n\n");
}

static void lesson_9_preferences(void) {
    const float pairs[][2] = {{0.0f, 2.0f}, {0.4f, 1.3f}, {1.0f, 1.0f},
                              {1.3f, 0.4f}, {2.0f, 0.0f}, {101.3f, 100.4f}};
    printf("4. Bradley-Terry and the reward model's loss\n\n");
    printf("   r chosen   r rejected   P(chosen wins)     loss   d/d chosen   d/d rejected\n");
    for (int i = 0; i < 6; i++) {
        float dchosen, drejected;
        double loss = loss_reward_model(&dchosen, &drejected, pairs[i][0], pairs[i][1]);
        printf("   %8.1f  %11.1f  %15.4f  %7.4f  %11.4f  %13.4f\n", pairs[i][0], pairs[i][1],
               sigmoid((double)pairs[i][0] - pairs[i][1]), loss, dchosen, drejected);
    }
    printf("\n   Only the difference counts (last line), and a pair that is ranked well hardly\n"
           "   pushes any more.\n\n");
}

static void lesson_9_rejection(const double* logp_ref, const double* reward) {
    enum { N = 4, T1 = 2 };
    const float group_reward[N] = {0.0f, 1.0f, 1.0f, 0.0f};
    const float logp[N * T1] = {-1.0f, -0.3f, -0.7f, -1.2f, -0.2f, -0.9f, -1.1f, -0.4f};
    float dlogp[N * T1];
    int mask[N * T1], best = best_of_n(group_reward, N);
    for (int i = 0; i < N * T1; i++) mask[i] = i / T1 == best;
    double loss = loss_sft(dlogp, logp, mask, N, T1);
    printf("5. Rejection sampling: rewards 0 1 1 0, two tokens each, keep the best\n\n");
    printf("   kept: answer %d (the first of the best), SFT loss on it %.4f, d/dlogp:\n  ", best + 1, loss);
    for (int i = 0; i < N * T1; i++) printf(" %7.4f", dlogp[i]);
    printf("\n\n   The best of N on the 27 answers, exactly. \"same beta\" is 1/log of the factor\n"
           "   by which N multiplies the odds p/(1-p) of a pass; pi* is chapter 8's optimum.\n\n");
    printf("        N     E[r]   KL to ref   same beta   max |pi_N - pi*|\n");
    double p_ref[TOY_ANSWERS], verdict[TOY_ANSWERS], p[TOY_ANSWERS], optimum[TOY_ANSWERS];
    toy_probabilities(p_ref, logp_ref);
    for (int y = 0; y < TOY_ANSWERS; y++) verdict[y] = toy_verify(y);
    for (int n = 1; n <= 16; n *= 2) {
        double passed = 0.0, passed_ref = 0.0, kl = 0.0;
        char text[16];
        toy_best_of_n(p, p_ref, verdict, n);
        for (int y = 0; y < TOY_ANSWERS; y++) {
            passed += p[y] * verdict[y];
            passed_ref += p_ref[y] * verdict[y];
            kl += p[y] * log(p[y] / p_ref[y]);
        }
        printf("   %6d  %7.4f  %10.4f", n, passed, fabs(kl) < 1e-12 ? 0.0 : kl);
        if (n == 1) { printf("  %10s  %17s\n", "infinite", "-"); continue; }
        double beta = 1.0 / log(passed / (1.0 - passed) * (1.0 - passed_ref) / passed_ref);
        toy_optimum(optimum, logp_ref, reward, beta);
        printf("  %10.4f  %17s\n", beta,
               toy_difference_text(text, toy_largest_difference(p, optimum, TOY_ANSWERS), 1e-12));
    }
    printf("\n   SFT on the kept answers pulls the policy to pi_N. With a 0/1 reward that is a\n"
           "   policy at which KL-regularized RL would arrive too: N plays the part of beta.\n\n");
}

static void lesson_9_dpo_pair(void) {
    const float logp[] = {-12.0f, -15.5f}, ref[] = {-11.0f, -14.0f}, beta = 0.1f;
    const char* names[] = {"chosen", "rejected"};
    float dlogp[2];
    double loss = loss_dpo(&dlogp[0], &dlogp[1], logp[0], logp[1], ref[0], ref[1], beta);
    double margin = beta * ((logp[0] - ref[0]) - (logp[1] - ref[1]));
    printf("6. DPO on one pair, beta = %.1f\n\n", beta);
    printf("   answer      log pi   log pi_ref   implicit reward   d/d(log pi)\n");
    for (int i = 0; i < 2; i++)
        printf("   %-9s %8.1f  %11.1f  %16.2f  %12.5f\n", names[i], logp[i], ref[i],
               beta * (logp[i] - ref[i]), dlogp[i]);
    printf("\n   margin %.2f, P = sigma(margin) = %.4f, loss = -log P = %.4f\n"
           "   gradient -beta (1 - P) and +beta (1 - P). Both answers have lost probability,\n"
           "   and the margin is positive all the same: DPO looks only at the difference.\n\n",
           margin, sigmoid(margin), loss);
}

static void lesson_9_dpo(const double* logp_ref, const double* theta_ref, const double* reward) {
    const double betas[] = {1.0, 0.5, 0.1};
    double verdict[TOY_ANSWERS], logp[TOY_PARAMS], p[TOY_ANSWERS], best[TOY_ANSWERS], log_Z = 0.0;
    for (int y = 0; y < TOY_ANSWERS; y++) verdict[y] = toy_verify(y);
    printf("7. DPO on the 27 answers: pairs from pi_ref, a judge with P = sigma(r_i - r_j),\n"
           "   400 steps; pi* is the optimum of chapter 8, which DPO has not been told\n\n");
    printf("   beta   loss at pi_ref   loss at the end     E[r]   max |pi - pi*|\n");
    for (int i = 0; i < 3; i++) {
        double theta[TOY_PARAMS], grad[TOY_PARAMS], value[TOY_STATES];
        char text[16];
        memcpy(theta, theta_ref, sizeof theta);
        double start = toy_dpo_gradient(grad, logp_ref, logp_ref, verdict, betas[i]);
        double end = toy_train_dpo(theta, logp_ref, verdict, betas[i], 400);
        toy_log_policy(logp, theta);
        toy_probabilities(p, logp);
        log_Z = toy_optimum(best, logp_ref, reward, betas[i]);
        printf("   %4.1f  %15.6f  %16.6f  %7.4f  %15s\n", betas[i], start, end,
               toy_solve(value, grad, logp, reward),
               toy_difference_text(text, toy_largest_difference(p, best, TOY_ANSWERS), 1e-6));
    }
    printf("\n   At pi_ref the loss is log 2. The end is the same for every beta: what is left\n"
           "   is the judge's own doubt. The implicit reward after training with beta = 0.1:\n\n");
    printf("   answer   reward   beta log(pi/pi_ref)   + beta log Z\n");
    for (int y = 6; y < 10; y++) {
        char text[4];
        double implicit = 0.1 * (toy_sum_along(logp, y) - toy_sum_along(logp_ref, y));
        printf("   %6s  %7.0f  %20.4f  %13.4f\n", toy_text(text, y), verdict[y], implicit,
               fabs(implicit + 0.1 * log_Z) < 5e-5 ? 0.0 : implicit + 0.1 * log_Z);
    }
    printf("\n   The language model has become its own reward model, up to a constant.\n\n");
}

static void lesson_9_limits(void) {
    const int mask[1] = {1};
    const float drifts[] = {80.0f, -80.0f}, other[1] = {-90.0f}, adv[] = {1.0f, -1.0f};
    printf("8. A policy that has run away: log-ratio +80 and -80, every number stays finite\n\n");
    printf("   log-ratio  loss                     value      d/dlogp\n");
    for (int i = 0; i < 2; i++) {
        float dlogp[1], drejected, logp[1] = {other[0] + drifts[i]};
        for (int a = 0; a < 2; a++) {
            double loss = loss_clip(dlogp, logp, other, adv + a, mask, 1, 1, 0.2f, 0.2f, NORM_TOKEN_MEAN);
            printf("   %9.0f  clip, advantage %+.0f  %11.4g  %11.4g\n", drifts[i], adv[a], loss, dlogp[0]);
        }
        for (int k = 1; k <= 3; k++) {
            double loss = loss_kl(dlogp, logp, other, mask, 1, 1, NORM_TOKEN_MEAN, k);
            printf("   %9.0f  KL, k%d               %11.4g  %11.4g\n", drifts[i], k, loss, dlogp[0]);
        }
        double loss = loss_dpo(dlogp, &drejected, logp[0], 0.0f, other[0], 0.0f, 1.0f);
        printf("   %9.0f  DPO, beta 1, chosen  %11.4g  %11.4g\n", drifts[i], loss, dlogp[0]);
    }
    printf("\n   Finite is not harmless: a k3 or a ratio of this size overrules all the rest.\n"
           "   Watch the KL, and clip the gradient's norm.\n");
}

static void lesson_9(void) {
    double theta_ref[TOY_PARAMS], logp_ref[TOY_PARAMS], reward[TOY_PARAMS];
    toy_fill(theta_ref, TOY_PARAMS, 2, 1.0);
    toy_log_policy(logp_ref, theta_ref);
    toy_rewards(reward);
    printf("LESSON 9. Losses (D3 section 6, D1)\n\n");
    lesson_9_policy_gradient();
    lesson_9_clip();
    lesson_9_ratios();
    lesson_9_sft();
    lesson_9_preferences();
    lesson_9_rejection(logp_ref, reward);
    lesson_9_dpo_pair();
    lesson_9_dpo(logp_ref, theta_ref, reward);
    lesson_9_limits();
}

/* ==========================================================================================================
 * CHAPTER 10. The training loop                                                                          (D1)
 *
 * Question: how do the pieces become a loop that makes a model better?
 *
 * One update, in the order of nanochat's chat_rl.py:
 *
 *     1  take 16 questions                                       examples_per_step
 *     2  sample 16 rollouts of each                              num_samples, chapter 6
 *     3  reward every rollout: 1 right, 0 wrong                  chapter 5
 *     4  advantage = reward - mean reward of the question        chapter 7
 *     5  loss = -(advantage x sum of log-probs) / valid tokens   chapter 9; valid: mask 1; questions averaged
 *     6  backward, clip the gradient, AdamW                      train_gpt.c
 *     7  throw the samples away: they came from the old policy   on-policy, D3 section 1
 *
 * What it leaves out of GRPO, and why. No KL penalty and no reference model: a verifier cannot be flattered,
 * so there is less to protect. No ratio and no clipping: each batch is used once, by the policy that sampled
 * it, so the ratio is exactly 1. No division by the standard deviation. What is left is close to REINFORCE
 * with a baseline, averaged over tokens as in DAPO.
 *
 * The other methods make each of these choices in their own way, and nothing else. So there is one loop, and
 * a method is a row of a table further down: `./rl algos` prints it, ./rl train --algo NAME runs a row, and
 * ./rl compare runs all of them from the same model.
 *
 * The learning rate falls in a straight line from lr * init_lr_frac to 0. It is much smaller than in
 * supervised training: there every token has a right answer, here a whole rollout has one bit.
 *
 * A group whose rewards are all equal has, with a baseline from the group, advantages of exactly 0 and
 * therefore a gradient of exactly 0 (but for a KL term in the loss). It is not even computed.
 *
 * Traps. (1) "On-policy" is a statement about numbers. With top-k 50 the sampler is not quite the model: it
 * never draws the 51st token. The loss takes the model's own log-probabilities and ignores the difference, as
 * nanochat does: a small bias. (2) The entropy that is logged is the mean of -log pi over the sampled tokens:
 * an estimate, unbiased at temperature 1 without top-k. (3) A reward that rises is no proof that the task is
 * learned; chapter 11 looks at questions that were never trained on.
 * ======================================================================================================== */

typedef float (*RewardFunction)(const char* response, const char* truth);

// What a verifier looks at. `format` tells whether the answer is where the reward wants it, right or wrong.
typedef struct {
    const char* name;
    RewardFunction reward;
    int (*format)(const char* text, char* out, int cap);
} RewardKind;

static const RewardKind reward_kinds[] = {
    {"gsm8k", reward_gsm8k, extract_hash_answer},
    {"boxed", reward_boxed, extract_boxed},
};

static const RewardKind* find_reward(const char* name) {
    for (size_t i = 0; i < sizeof reward_kinds / sizeof *reward_kinds; i++)
        if (!strcmp(name, reward_kinds[i].name)) return &reward_kinds[i];
    fail(2, "there is no reward '%s'; choose gsm8k or boxed", name);
}

// A question ready for RL: its prompt, and its final answer: what stands behind GSM8K's last ####, or MATH's
// bare answer. The written solution is not used (D2 section 6), except as a demonstration in chapter 12.
typedef struct { Tokens prompt; char* truth; const char *question, *solution; } Question;
typedef struct { Question* list; int count; Problems problems; } Questions;

// Loads a file; prompts that leave no room for `room` new tokens in the context are counted and skipped.
static Questions load_questions(const char* path, int context, int room) {
    Questions q = {.problems = load_problems(path)};
    q.list = allocate((size_t)q.problems.count, sizeof(Question));
    for (int i = 0; i < q.problems.count; i++) {
        const Problem* p = &q.problems.list[i];
        char truth[MAX_ANSWER + 1];
        Tokens prompt = {0};
        render_prompt(&prompt, p->question);
        if (prompt.length + room > context) {
            tokens_free(&prompt);
            continue;
        }
        const char* answer = extract_hash_answer(p->answer, truth, sizeof truth) ? truth : p->answer;
        q.list[q.count] = (Question){prompt, copy_text(answer), p->question, p->answer};
        q.count++;
    }
    if (q.count < q.problems.count)
        printf("%s: %d of %d prompts leave no room for %d new tokens in the context of %d and are skipped\n",
               path, q.problems.count - q.count, q.problems.count, room, context);
    if (!q.count)
        fail(2, "%s: no question fits the model's context of %d tokens with %d new ones", path, context,
             room);
    return q;
}

static void questions_free(Questions* q) {
    for (int i = 0; i < q->count; i++) tokens_free(&q->list[i].prompt), free(q->list[i].truth);
    free(q->list);
    problems_free(&q->problems);
    *q = (Questions){0};
}

// ---- options, shared by all commands that sample

typedef struct {
    const char *model, *data, *eval_data, *reward, *out, *resume, *answer, *reference;
    int num_samples, examples_per_step, eval_every, eval_examples, eval_samples, save_every, log_every,
        num_epochs, num_steps, threads, allow_overlap;
    SampleOptions sample;
    float lr, init_lr_frac, grad_clip;
    AdamOptions adam;
    uint64_t seed;
    // what makes a method: see the table below
    const char *algo, *advantage, *ratio, *norm, *kl_estimator, *kl_in, *kl_per;
    float clip_low, clip_high, beta, gamma, lambda, value_lr, value_clip;
    int epochs_per_batch, minibatch, resample, overlong;
} RlOptions;

// ---- the methods
//
// A policy-gradient method is a few decisions, and each of them is an option of ./rl train:
//
//     advantage   none      the reward itself                     ratio   none      the policy gradient
//                 centered  minus the mean of the group                   token     PPO's clip
//                 rloo      minus the mean of the others                  sequence  GSPO
//                 grpo      centered, over the standard deviation         cispo     CISPO
//                 gae       per token, with a value model
//
//     norm        token     1 / tokens of the group               KL      beta      its price; 0 = none
//                 sequence  1 / (K * tokens of the answer)                in        the loss, or the reward
//                 sum       1 / K                                         k1 k2 k3  the estimator, chapter 8
//                 constant  1 / (K * longest possible answer)
//
//     minibatch   questions per gradient step, 0 = all at once. With two steps per batch the second one works
//                 on rollouts of an older policy: that is when the ratio leaves 1 and the clip has work.
//                 The value's clip has work from the second epoch on only: see value_backward().
//     resample    how often a group without signal is replaced by another question (DAPO)
//     overlong    in the last so many tokens before the limit the reward falls by up to 1 (DAPO)
//
// So a method is a row of defaults, and between two rows one can walk: grpo with --advantage centered --norm
// token --beta 0 is nanochat to the bit (on-policy the ratio is 1, and clipping has nothing to do).
//
// Two rows differ from their papers: RLOO's KL penalty is left out, and GSPO's bounds, 3e-4 and 4e-4 in the
// paper, are a hundred times wider. Its log-ratio is a mean over the answer, which is the calmer the longer
// the answer is, and ours are short. CISPO's lower bound, 1 - 1 = 0, is no bound.

typedef struct {
    const char *name, *paper;
    const char *advantage, *ratio, *norm;
    float clip_low, clip_high, beta;
    const char *kl_estimator, *kl_in;
    int minibatch, resample, overlong;
} Method;

static const Method methods[] = {
    {"nanochat", "Karpathy 2025 (D1)", "centered", "none", "token", 0, 0, 0, "k3", "loss", 0, 0, 0},
    {"reinforce", "Williams 1992", "none", "none", "sum", 0, 0, 0, "k3", "loss", 0, 0, 0},
    {"rloo", "Ahmadian et al. 2024", "rloo", "none", "sum", 0, 0, 0, "k3", "loss", 0, 0, 0},
    {"grpo", "Shao et al. 2024", "grpo", "token", "sequence", 0.2f, 0.2f, 0.04f, "k3", "loss", 0, 0, 0},
    {"drgrpo", "Liu et al. 2025", "centered", "token", "constant", 0.2f, 0.2f, 0, "k3", "loss", 0, 0, 0},
    {"dapo", "Yu et al. 2025", "grpo", "token", "token", 0.2f, 0.28f, 0, "k3", "loss", 8, 3, 16},
    {"gspo", "Zheng et al. 2025", "grpo", "sequence", "sequence", 0.03f, 0.04f, 0, "k3", "loss", 8, 0, 0},
    {"cispo", "MiniMax 2025", "grpo", "cispo", "token", 1, 0.28f, 0, "k3", "loss", 8, 0, 0},
    {"ppo", "Ouyang et al. 2022", "gae", "token", "token", 0.2f, 0.2f, 0.02f, "k1", "reward", 8, 0, 0},
};
enum { METHODS = sizeof methods / sizeof *methods };

// What an option may be: lists that end in NULL, and the numbers of their entries.
enum { ADVANTAGE_NONE, ADVANTAGE_CENTERED, ADVANTAGE_RLOO, ADVANTAGE_GRPO, ADVANTAGE_GAE };
static const char* const advantage_names[] = {"none", "centered", "rloo", "grpo", "gae", NULL};
enum { RATIO_NONE, RATIO_TOKEN, RATIO_SEQUENCE, RATIO_CISPO };
static const char* const ratio_names[] = {"none", "token", "sequence", "cispo", NULL};
enum { NORM_CONSTANT = NORM_SEQUENCE_SUM + 1 };
static const char* const norm_names[] = {"token", "sequence", "sum", "constant", NULL};
static const char* const estimator_names[] = {"k1", "k2", "k3", NULL};
static const char* const kl_in_names[] = {"loss", "reward", NULL};
static const char* const kl_per_names[] = {"sequence", "token", NULL};

// The place of `text` in a list, or a complaint that shows the list.
static int choose(const char* text, const char* const* names, const char* option) {
    Text list = {0};
    for (int i = 0; names[i]; i++) {
        if (!strcmp(text, names[i])) { text_free(&list); return i; }
        text_printf(&list, "%s%s", !i ? "" : names[i + 1] ? ", " : " or ", names[i]);
    }
    fail(2, "there is no --%s '%s'; choose %s", option, text, list.data);
}

// Makes a method's decisions the defaults.
static void set_method(RlOptions* o, const char* name) {
    const char* names[METHODS + 1] = {NULL};
    for (int i = 0; i < METHODS; i++) names[i] = methods[i].name;
    const Method* m = &methods[choose(name, names, "algo")];
    o->algo = m->name, o->advantage = m->advantage, o->ratio = m->ratio, o->norm = m->norm;
    o->clip_low = m->clip_low, o->clip_high = m->clip_high;
    o->beta = m->beta, o->kl_estimator = m->kl_estimator, o->kl_in = m->kl_in;
    o->minibatch = m->minibatch, o->resample = m->resample, o->overlong = m->overlong;
}

// The table, as far as its rows differ.
static void print_methods(void) {
    printf("%-10s %-9s %-9s %-9s %-10s %-17s %s\n", "--algo", "advantage", "ratio", "norm", "clip", "KL",
           "minibatch");
    for (int i = 0; i < METHODS; i++) {
        const Method* m = &methods[i];
        char clip[32] = "-", kl[64] = "-", minibatch[16] = "all";
        if (strcmp(m->ratio, "none"))
            snprintf(clip, sizeof clip, "%g, %g", (double)m->clip_low, (double)m->clip_high);
        if (m->beta > 0.0f)
            snprintf(kl, sizeof kl, "%g %s in %s", (double)m->beta, m->kl_estimator, m->kl_in);
        if (m->minibatch) snprintf(minibatch, sizeof minibatch, "%d", m->minibatch);
        printf("%-10s %-9s %-9s %-9s %-10s %-17s %9s\n", m->name, m->advantage, m->ratio, m->norm, clip, kl,
               minibatch);
    }
    printf("\n");
    for (int i = 0; i < METHODS; i++) {
        const Method* m = &methods[i];
        printf("%-10s %s", m->name, m->paper);
        if (m->resample) printf("; resample %d, overlong %d", m->resample, m->overlong);
        printf("\n");
    }
    printf("\nEvery column is an option: --algo grpo --advantage centered --norm token\n"
           "--beta 0 is nanochat. ./rl train --algo NAME --help shows all of them with\ntheir values.\n");
}

static RlOptions rl_defaults(void) {
    RlOptions o = {
        .model = "out/run/sft",
        .data = "data/train.jsonl",
        .eval_data = "data/test.jsonl",
        .reward = "gsm8k",
        .out = "out/rl",
        .num_samples = 16,
        .examples_per_step = 16,
        .eval_every = 20,
        .eval_examples = 64,
        .eval_samples = 4,
        .log_every = 5,
        .num_epochs = 2,
        .sample = {.max_new_tokens = 96, .temperature = 1.0f, .top_k = 50, .top_p = 1.0f},
        .lr = 3e-3f,
        .init_lr_frac = 0.13f,
        .grad_clip = 1.0f,
        .adam = {0.9f, 0.95f, 1e-8f, 0.0f},
        .seed = 1,
        .kl_per = "sequence",
        .gamma = 1.0f,
        .lambda = 0.95f,
        .value_lr = 1e-3f,
        .value_clip = 0.2f,
        .epochs_per_batch = 1,
    };
    set_method(&o, methods[0].name);
    return o;
}

// ---- who learns from whom

// What is rewarded: a verifier's 0 or 1, a reward model's score, or the sum of both. The verifier is there in
// any case, to tell how many answers are really right.
typedef struct {
    const RewardKind* verifier;
    int verified;                   // 1 = the verifier's verdict is (part of) the reward
    Model* model;                   // NULL: no reward model
} Reward;

typedef struct {
    Model *policy, *value, *reference;         // value: GAE only, else NULL; reference: frozen, NULL = no KL
    Optimizer *optimizer, *value_optimizer;
    Reward reward;
    const RlOptions* o;
    int advantage, ratio, norm, estimator, kl_in_reward, kl_per_token;   // the options' words as numbers
} Learner;

static Learner learner_new(Model* policy, Optimizer* optimizer, Reward reward, const RlOptions* o) {
    return (Learner){.policy = policy,
                     .optimizer = optimizer,
                     .reward = reward,
                     .o = o,
                     .advantage = choose(o->advantage, advantage_names, "advantage"),
                     .ratio = choose(o->ratio, ratio_names, "ratio"),
                     .norm = choose(o->norm, norm_names, "norm"),
                     .estimator = choose(o->kl_estimator, estimator_names, "kl-estimator") + 1,
                     .kl_in_reward = choose(o->kl_in, kl_in_names, "kl-in"),
                     .kl_per_token = choose(o->kl_per, kl_per_names, "kl-per")};
}

// A reward or value model as it begins: the policy's body, and a score of 0, so that it says 0 to everything.
static Model scalar_model_on(const Model* policy) {
    Config c = policy->config;
    c.scalar = 1;
    Model m = model_new(c);
    memcpy(m.weights.memory, policy->weights.memory,
           (policy->weights.count - head_count(&policy->config)) * sizeof(float));
    return m;
}

// ---- one group: the rollouts of one question

typedef struct {
    double reward;                  // sum of the rewards
    int right, tool, format;        // rollouts that are right, that used the tool, that end in the format
    long tokens, sampled;           // all tokens after the prompt, and those the model itself sampled
    double logp;                    // sum of the sampled tokens' log-probabilities
} Group;

// Step 3: the verifier's reward (K) for the rollouts of one question.
static Group judge_group(float* reward, const Rollout* rollouts, int K, const char* truth,
                         const RewardKind* kind) {
    char answer[MAX_ANSWER + 1];
    Group g = {0};
    for (int k = 0; k < K; k++) {
        const Rollout* r = &rollouts[k];
        Text text = rollout_text(r);
        reward[k] = kind->reward(text.data, truth);
        g.reward += reward[k];
        g.right += reward[k] > 0.5f;
        g.tool += used_tool(r);
        g.format += kind->format(text.data, answer, sizeof answer);
        g.tokens += r->length;
        g.sampled += count_masked(r->mask, r->length);
        for (int t = 0; t < r->length; t++) g.logp += r->mask[t] ? r->logp[t] : 0.0f;
        text_free(&text);
    }
    return g;
}

static int has_signal(const float* advantage, int n) {
    for (int i = 0; i < n; i++) if (advantage[i] != 0.0f) return 1;
    return 0;
}

// ---- what an update learns from

// The rollouts of B questions and all that is known about them, token by token, in the (K,T1) layout of the
// losses; T1 is the longest rollout of all.
typedef struct {
    int B, K, T1;
    int* question;                   // (B)
    Tokens* prompts;                 // (B)
    Rollout* rollouts;               // (B,K)
    float* reward;                   // (B,K)
    Group* group;                    // (B)
    int resampled;                   // groups that were drawn again
    double kl_ref;                   // KL(policy || reference) by k1: mean over the answers, nats per answer
    int* mask;                       // this and all below: (B,K,T1)
    float *logp_old, *logp_ref;      // of the policy that sampled, and of the reference
    float* token_reward;             // minus the KL penalty; on the last token plus the answer's reward
    float* advantage;
    float *value, *target;           // GAE only: V when the token was sampled, and what V should have been
} Experience;

static Experience experience_new(int B, int K) {
    size_t n = (size_t)B * K;
    return (Experience){.B = B,
                        .K = K,
                        .question = allocate((size_t)B, sizeof(int)),
                        .prompts = allocate((size_t)B, sizeof(Tokens)),
                        .rollouts = allocate(n, sizeof(Rollout)),
                        .reward = allocate(n, sizeof(float)),
                        .group = allocate((size_t)B, sizeof(Group))};
}

static void experience_free(Experience* e) {
    rollouts_free(e->rollouts, e->B * e->K);
    free(e->question), free(e->prompts), free(e->reward), free(e->group);
    free(e->mask), free(e->logp_old), free(e->logp_ref), free(e->token_reward), free(e->advantage);
    free(e->value), free(e->target);
    *e = (Experience){0};
}

// Appends a text that is judged as a whole: its last token is the only one that is scored, whatever follows.
static void batch_add_judged(Batch* b, const int* ids, int n, int prefix) {
    int* targets = allocate((size_t)n, sizeof(int));
    for (int i = 0; i < n; i++) targets[i] = i + 1 < n ? -1 : 0;
    batch_add(b, ids, targets, n, prefix);
    free(targets);
}

// A reward model reads the question and the whole answer, and says one number at the last token.
typedef struct {
    const Questions* q;
    const int* index;
    const Rollout* rollouts;
    float* score;
    int K;
} ScoreTask;

static void score_group(Model* m, int index, void* context) {
    const ScoreTask* s = context;
    const Tokens* prompt = &s->q->list[s->index[index]].prompt;
    const Rollout* rollouts = s->rollouts + (size_t)index * s->K;
    int last = prompt->length - 1, K = s->K;
    int* ids = allocate((size_t)longest_rollout(rollouts, K) + 1, sizeof(int));
    int* place = allocate((size_t)K, sizeof(int));
    Rollout* distinct = allocate((size_t)K, sizeof(Rollout));
    int count = distinct_rollouts(distinct, place, rollouts, K);
    Batch b = {0};
    int root = batch_add(&b, prompt->ids, NULL, last, -1);
    ids[0] = prompt->ids[last];
    for (int i = 0; i < count; i++) {
        memcpy(ids + 1, distinct[i].ids, (size_t)distinct[i].length * sizeof(int));
        batch_add_judged(&b, ids, distinct[i].length + 1, root);
    }
    model_scalar_forward(m, &b);
    for (int k = 0; k < K; k++) s->score[(size_t)index * K + k] = m->acts.scalar[place[k]];
    batch_free(&b), free(ids), free(place), free(distinct);
}

// DAPO's soft punishment: 0 for an answer that leaves `window` tokens of the limit unused, falling to -1 for
// one that uses all of them.
static float overlong_penalty(int length, int limit, int window) {
    int over = length - (limit - window);
    return window > 0 && over > 0 ? -(float)over / (float)window : 0.0f;
}

// Step 3: what K rollouts of each of n questions, q->list[index[0..n-1]], are worth: reward (n,K), group (n).
static void reward_rollouts(float* reward, Group* group, const Reward* r, const RlOptions* o,
                            const Questions* q, const int* index, const Rollout* rollouts, int n) {
    int K = o->num_samples;
    float* score = allocate((size_t)n * K, sizeof(float));
    ScoreTask task = {q, index, rollouts, score, K};
    if (r->model) run_tasks(r->model, n, 0, score_group, &task);
    for (int i = 0; i < n; i++) {
        const Question* question = &q->list[index[i]];
        float* own = reward + (size_t)i * K;
        group[i] = judge_group(own, rollouts + (size_t)i * K, K, question->truth, r->verifier);
        group[i].reward = 0.0;
        for (int k = 0; k < K; k++) {
            if (!r->verified) own[k] = 0.0f;
            own[k] += score[i * K + k];
            own[k] += overlong_penalty(rollouts[i * K + k].length, o->sample.max_new_tokens, o->overlong);
            if (!isfinite(own[k]))
                fail(2, "the reward %s is not a number for rollout %d of the question: %s", o->reward, k + 1,
                     question->question);
            group[i].reward += own[k];
        }
    }
    free(score);
}

// Steps 2 and 3 for the questions in n of the B slots. What stood in these slots before is thrown away. seed
// and first are generate()'s: the random numbers of question i of the n come from number first + i.
static void fill_slots(Experience* e, const int* slots, int n, const Learner* l, const Questions* q,
                       uint64_t seed, uint64_t first) {
    int K = e->K;
    Tokens* prompts = allocate((size_t)n, sizeof(Tokens));
    float* reward = allocate((size_t)n * K, sizeof(float));
    Group* group = allocate((size_t)n, sizeof(Group));
    int* index = allocate((size_t)n, sizeof(int));
    for (int i = 0; i < n; i++) index[i] = e->question[slots[i]], prompts[i] = q->list[index[i]].prompt;
    Rollout* fresh = generate(l->policy, prompts, n, K, l->o->sample, tool_calculator, seed, first);
    reward_rollouts(reward, group, &l->reward, l->o, q, index, fresh, n);
    for (int i = 0; i < n; i++) {
        e->prompts[slots[i]] = prompts[i], e->group[slots[i]] = group[i];
        for (int k = 0; k < K; k++) {
            int to = slots[i] * K + k, from = i * K + k;
            Rollout old = e->rollouts[to];          // goes out with the array of the new ones
            e->rollouts[to] = fresh[from], fresh[from] = old;
            e->reward[to] = reward[from];
        }
    }
    rollouts_free(fresh, n * K);
    free(prompts), free(reward), free(group), free(index);
}

// The token arrays, once the rollouts are all there.
static void lay_out_tokens(Experience* e) {
    float** arrays[] = {&e->logp_old, &e->logp_ref, &e->token_reward, &e->advantage, &e->value, &e->target};
    int rollouts = e->B * e->K, T1 = e->T1 = longest_rollout(e->rollouts, rollouts);
    e->mask = allocate((size_t)rollouts * T1, sizeof(int));
    for (int i = 0; i < 6; i++) *arrays[i] = allocate((size_t)rollouts * T1, sizeof(float));
    for (int i = 0; i < rollouts; i++)
        for (int t = 0; t < e->rollouts[i].length; t++) {
            size_t at = (size_t)i * T1 + t;
            e->mask[at] = e->rollouts[i].mask[t];
            e->logp_old[at] = e->mask[at] ? e->rollouts[i].logp[t] : 0.0f;
        }
}

static int all_equal(const float* x, int n) {
    for (int i = 1; i < n; i++) if (x[i] != x[0]) return 0;
    return 1;
}

// Nothing to compare: a verifier has found all answers right, or all wrong (so DAPO asks, whatever they pay
// for their length); or, with another judge, all rewards are equal.
static int is_silent(const Experience* e, const Reward* r, int i) {
    int right = e->group[i].right;
    if (r->verified && !r->model) return right == 0 || right == e->K;
    return all_equal(e->reward + (size_t)i * e->K, e->K);
}

// Steps 1 to 3. With --resample, a silent question is replaced by another one, drawn at random, up to so many
// times.
static Experience collect(const Learner* l, const Questions* q, const int* chosen, long step) {
    const RlOptions* o = l->o;
    int B = o->examples_per_step, K = o->num_samples;
    Experience e = experience_new(B, K);
    int* slots = allocate((size_t)B, sizeof(int));
    for (int i = 0; i < B; i++) slots[i] = i, e.question[i] = chosen[i];
    fill_slots(&e, slots, B, l, q, o->seed + 1, (uint64_t)step * (uint64_t)B);
    for (int again = 1; again <= o->resample; again++) {
        Rng rng = random_stream(o->seed + 3, (uint64_t)step, (uint64_t)again);   // no rollout's stream
        int silent = 0;
        for (int i = 0; i < B; i++) if (is_silent(&e, &l->reward, i)) slots[silent++] = i;
        if (!silent) break;
        for (int i = 0; i < silent; i++) e.question[slots[i]] = random_int(&rng, q->count);
        fill_slots(&e, slots, silent, l, q, random_u64(&rng), 0);
        e.resampled += silent;
    }
    free(slots);
    lay_out_tokens(&e);
    return e;
}

// log pi_ref of every sampled token of question `index`.
static void reference_group(Model* m, int index, void* context) {
    Experience* e = context;
    size_t at = (size_t)index * e->K * e->T1;
    read_group(e->logp_ref + at, e->mask + at, m, &e->prompts[index], e->rollouts + (size_t)index * e->K,
               e->K, e->T1);
}

static void advantages_by_kind(float* adv, const float* reward, int K, int kind) {
    if (kind == ADVANTAGE_NONE) memcpy(adv, reward, (size_t)K * sizeof(float));
    if (kind == ADVANTAGE_CENTERED) advantages_centered(adv, reward, K);
    if (kind == ADVANTAGE_RLOO) advantages_rloo(adv, reward, K);
    if (kind == ADVANTAGE_GRPO) advantages_grpo(adv, reward, K, 1e-6f);
}

// One advantage per answer (K), to every sampled token of the answers to question i.
static void spread_advantages(Experience* e, int i, const float* adv) {
    for (int k = 0; k < e->K; k++)
        for (int t = 0; t < e->T1; t++) {
            size_t at = ((size_t)i * e->K + k) * e->T1 + t;
            e->advantage[at] = e->mask[at] ? adv[k] : 0.0f;
        }
}

// Step 4: the reward of each token, and the advantage. The KL penalty in the reward is beta times the sum of
// the token estimates (chapter 8); --kl-per token takes their mean, as D3 prints it, which is n times less
// for an answer of n tokens. The advantage of a whole answer goes to each of its sampled tokens; that of GAE
// comes later, from the value model.
static void weigh(Experience* e, const Learner* l) {
    int B = e->B, K = e->K, T1 = e->T1;
    float *total = allocate((size_t)K, sizeof(float)), *adv = allocate((size_t)K, sizeof(float));
    if (l->reference) run_tasks(l->reference, B, 0, reference_group, e);
    for (int i = 0; i < B; i++) {
        for (int k = 0; k < K; k++) {
            size_t at = ((size_t)i * K + k) * T1;
            int n = count_masked(e->mask + at, T1), last = -1;
            double sum = 0.0, slope;
            for (int t = 0; t < T1; t++) {
                if (!e->mask[at + t]) continue;
                double log_ratio = (double)e->logp_old[at + t] - e->logp_ref[at + t];
                if (l->reference) e->kl_ref += log_ratio / (B * K);
                if (l->reference && l->kl_in_reward) {
                    double penalty = l->o->beta * kl_estimate(&slope, log_ratio, l->estimator);
                    e->token_reward[at + t] = (float)(-penalty / (l->kl_per_token ? n : 1));
                }
                last = t;
            }
            if (last >= 0) e->token_reward[at + last] += e->reward[i * K + k];
            for (int t = 0; t < T1; t++) sum += e->token_reward[at + t];
            total[k] = (float)sum;
        }
        if (l->advantage == ADVANTAGE_GAE) continue;
        advantages_by_kind(adv, total, K, l->advantage);
        spread_advantages(e, i, adv);
    }
    free(total), free(adv);
}

// ---- steps 5 and 6

// How far the policy has moved from the one that sampled: sums over the tokens trained on so far, of the
// ratio, of the ratios outside the clip's bounds (how many), and of KL(old || policy) by k3.
typedef struct { double tokens, ratio, outside, kl; } Drift;

typedef struct {
    Experience* e;
    const Learner* l;
    int from, count;                 // the questions of this gradient step
    int first;                       // 1 = these questions have not been used before
    double *loss, *value_loss;       // (B) out
    Drift* drift;                    // (B) out, added up
} UpdateTask;

// A method's norm as one of chapter 8's, and the constant that comes on top.
static int chapter_8_norm(double* constant, const Learner* l) {
    *constant = l->norm == NORM_CONSTANT ? 1.0 / l->o->sample.max_new_tokens : 1.0;
    return l->norm == NORM_CONSTANT ? NORM_SEQUENCE_SUM : l->norm;
}

// The loss of one group and its derivative by logp (K,T1), as the method says.
static double policy_loss(float* dlogp, const Learner* l, const LossArrays* a) {
    static const TokenLoss token_losses[] = {token_policy_gradient, token_clip, token_clip, token_cispo};
    TokenInput in = {.clip_low = l->o->clip_low, .clip_high = l->o->clip_high};
    double constant;
    int norm = chapter_8_norm(&constant, l);
    double loss = average_tokens(dlogp, token_losses[l->ratio], in, a, norm);
    for (int i = 0; i < a->B * a->T1 && constant != 1.0; i++) dlogp[i] *= (float)constant;
    return loss * constant;
}

// beta times the KL loss, averaged as the policy's loss is: adds its derivative to dlogp.
static double add_kl_loss(float* dlogp, const Learner* l, const LossArrays* a, const float* logp_ref) {
    float* dkl = allocate((size_t)a->B * a->T1, sizeof(float));
    double constant;
    int norm = chapter_8_norm(&constant, l);
    double scale = l->o->beta * constant;
    double loss = loss_kl(dkl, a->logp, logp_ref, a->mask, a->B, a->T1, norm, l->estimator);
    for (int i = 0; i < a->B * a->T1; i++) dlogp[i] += (float)scale * dkl[i];
    free(dkl);
    return scale * loss;
}

static void add_drift(Drift* d, const Learner* l, const LossArrays* a) {
    for (int b = 0; b < a->B; b++) {
        double of_sequence = a->sequence_ratio ? mean_log_ratio(a, b) : 0.0, slope;
        for (size_t i = (size_t)b * a->T1; i < ((size_t)b + 1) * a->T1; i++) {
            if (!a->mask[i]) continue;
            double log_ratio = a->sequence_ratio ? of_sequence : (double)a->logp[i] - a->logp_other[i];
            double ratio = bounded_exp(&slope, log_ratio);
            d->tokens++, d->ratio += ratio;
            d->outside += ratio < 1.0 - l->o->clip_low || ratio > 1.0 + l->o->clip_high;
            d->kl += kl_estimate(&slope, (double)a->logp_other[i] - a->logp[i], 3);   // the old one sampled
        }
    }
}

// The way back from scatter_scored(): derivatives in the (K,T1) layout, divided by `questions`, in the order
// of the scored tokens; in place.
static void gather_scored(float* d, const int* mask, int n, int questions) {
    int scored = 0;
    for (int i = 0; i < n; i++) if (mask[i]) d[scored++] = d[i] / (float)questions;
}

// Loss and gradient of one group. A group without signal is skipped, unless a KL term in the loss has
// something to say to it.
static void group_backward(Model* m, int index, void* context) {
    const UpdateTask* u = context;
    const Learner* l = u->l;
    Experience* e = u->e;
    int question = u->from + index, K = e->K, T1 = e->T1, n = K * T1;
    const Rollout* rollouts = e->rollouts + (size_t)question * K;
    size_t at = (size_t)question * n;
    int kl_in_loss = l->o->beta > 0.0f && !l->kl_in_reward;
    if (!kl_in_loss && !has_signal(e->advantage + at, n)) return;
    float *logp = allocate((size_t)n, sizeof(float)), *dlogp = allocate((size_t)n, sizeof(float));
    Batch b = {0};
    batch_add_group(&b, &e->prompts[question], rollouts, K);
    model_forward(m, &b);
    scatter_scored(logp, e->mask + at, m->acts.logp, rollouts, K, T1);
    LossArrays a = {.logp = logp, .logp_other = e->logp_old + at, .advantage = e->advantage + at,
                    .mask = e->mask + at, .B = K, .T1 = T1, .per_token = 1,
                    .sequence_ratio = l->ratio == RATIO_SEQUENCE};
    double loss = policy_loss(dlogp, l, &a);
    if (kl_in_loss) loss += add_kl_loss(dlogp, l, &a, e->logp_ref + at);
    add_drift(&u->drift[question], l, &a);
    u->loss[question] = loss / u->count;
    gather_scored(dlogp, a.mask, n, u->count);
    model_backward(m, &b, dlogp);
    batch_free(&b);
    free(logp), free(dlogp);
}

// GAE along the sampled tokens of one answer; forced tokens are the world's and no steps of their own.
static void gae_of_sampled(float* advantage, const float* token_reward, const float* value, const int* mask,
                          int T1, float gamma, float lambda) {
    float* x = allocate(3 * (size_t)T1, sizeof(float));
    int n = 0;
    for (int t = 0; t < T1; t++)
        if (mask[t]) x[n] = token_reward[t], x[T1 + n] = value[t], n++;
    advantages_gae(x + 2 * T1, x, x + T1, n, gamma, lambda);
    n = 0;
    for (int t = 0; t < T1; t++) advantage[t] = mask[t] ? x[2 * T1 + n++] : 0.0f;
    free(x);
}

// PPO's other half: the value of every state in which a token was sampled. The first time, these values also
// give the advantages; then the value model learns from what came after. (So the advantages of a second
// minibatch come from a value model that has learned from the first. Usually all values are computed before
// the first step; here one pass through the value model serves both purposes.) V_old is the value of the
// first time: V itself until a second epoch, so only from then on can the clip of the value loss bind.
static void value_backward(Model* m, int index, void* context) {
    const UpdateTask* u = context;
    const RlOptions* o = u->l->o;
    Experience* e = u->e;
    int question = u->from + index, K = e->K, T1 = e->T1, n = K * T1;
    const Rollout* rollouts = e->rollouts + (size_t)question * K;
    size_t at = (size_t)question * n;
    float *value = allocate((size_t)n, sizeof(float)), *dvalue = allocate((size_t)n, sizeof(float));
    Batch b = {0};
    batch_add_group(&b, &e->prompts[question], rollouts, K);
    model_scalar_forward(m, &b);
    scatter_scored(value, e->mask + at, m->acts.scalar, rollouts, K, T1);
    if (u->first) {
        memcpy(e->value + at, value, (size_t)n * sizeof(float));
        for (int k = 0; k < K; k++)
            gae_of_sampled(e->advantage + at + k * T1, e->token_reward + at + k * T1, value + k * T1,
                          e->mask + at + k * T1, T1, o->gamma, o->lambda);
        for (int i = 0; i < n; i++) e->target[at + i] = e->advantage[at + i] + value[i];
    }
    u->value_loss[question] = loss_value(dvalue, value, e->value + at, e->target + at, e->mask + at, K, T1,
                                         o->value_clip, NORM_TOKEN_MEAN) / u->count;
    gather_scored(dvalue, e->mask + at, n, u->count);
    model_scalar_backward(m, &b, dvalue);
    batch_free(&b);
    free(value), free(dvalue);
}

// ---- one update

typedef struct {
    double reward, right, pass_rate, tool_rate, format_rate, length, entropy, loss, grad_norm, lr, seconds;
    double kl_ref, kl_old, ratio, clip_fraction, value_loss;
    double silent, resampled;       // groups whose rewards are all equal; groups drawn again
    double test;                    // held-out pass@1 after this update; NaN = not looked at
    long tokens;                    // of the rollouts, forced ones too; prompts and replaced groups not
} Metrics;

#define METRICS_HEADER                                                                                       \
    "step,reward,pass_rate,tool_rate,format_rate,groups_without_signal,mean_length,entropy,loss,grad_norm,"  \
    "lr,tokens_per_second,seconds,right,resampled,kl_reference,kl_old,ratio,clip_fraction,value_loss,test"

static void write_metrics(FILE* file, long step, const Metrics* s) {
    fprintf(file, "%ld,%.6g,%.6g,%.6g,%.6g,%g,%.6g,%.6g,%.6g,%.6g,%.6g,%.0f,%.4f,", step, s->reward,
            s->pass_rate, s->tool_rate, s->format_rate, s->silent, s->length, s->entropy, s->loss,
            s->grad_norm, s->lr, (double)s->tokens / s->seconds, s->seconds);
    fprintf(file, "%.6g,%g,%.6g,%.6g,%.6g,%.6g,%.6g,", s->right, s->resampled, s->kl_ref, s->kl_old,
            s->ratio, s->clip_fraction, s->value_loss);
    if (!isnan(s->test)) fprintf(file, "%.6g", s->test);
    fprintf(file, "\n");
}

// Steps 5 and 6 for the questions of one minibatch: the value model first, whose advantages the policy needs.
static void minibatch_step(Learner* l, UpdateTask* u, double decay, double* norm) {
    const RlOptions* o = l->o;
    if (l->value) {
        model_zero_grads(l->value);
        run_tasks(l->value, u->count, 1, value_backward, u);
        clip_gradient(l->value, o->grad_clip);
        adamw_step(l->value, l->value_optimizer, (float)(o->value_lr * decay), o->adam);
    }
    model_zero_grads(l->policy);
    run_tasks(l->policy, u->count, 1, group_backward, u);
    *norm = clip_gradient(l->policy, o->grad_clip);
    adamw_step(l->policy, l->optimizer, (float)((double)o->lr * o->init_lr_frac * decay), o->adam);
}

// What an update was like, from the groups of its experience.
static Metrics summarize(const Experience* e) {
    Metrics s = {.kl_ref = e->kl_ref, .resampled = e->resampled, .test = NAN};
    double logp = 0.0, n = (double)e->B * e->K;
    long sampled = 0;
    for (int i = 0; i < e->B; i++) {
        const Group* g = &e->group[i];
        s.reward += g->reward / n, s.right += g->right / n, s.pass_rate += (double)(g->right > 0) / e->B;
        s.tool_rate += g->tool / n, s.format_rate += g->format / n, s.length += (double)g->tokens / n;
        s.tokens += g->tokens, sampled += g->sampled, logp += g->logp;
        s.silent += all_equal(e->reward + i * e->K, e->K);
    }
    s.entropy = sampled ? -logp / (double)sampled : 0.0;
    return s;
}

// One whole update on the chosen questions. decay is the factor of the schedule on the learning rates.
static Metrics rl_step(Learner* l, const Questions* q, const int* chosen, long step, double decay) {
    const RlOptions* o = l->o;
    double begin = seconds_now();
    Experience e = collect(l, q, chosen, step);
    weigh(&e, l);
    int B = e.B, part = o->minibatch && o->minibatch < B ? o->minibatch : B, steps = 0;
    Metrics s = summarize(&e);
    double *loss = allocate((size_t)B, sizeof(double)), *value_loss = allocate((size_t)B, sizeof(double));
    double norm;
    Drift *drift = allocate((size_t)B, sizeof(Drift)), all = {0};
    for (int epoch = 0; epoch < o->epochs_per_batch; epoch++)
        for (int from = 0; from < B; from += part, steps++) {
            UpdateTask u = {&e, l, from, min_int(part, B - from), epoch == 0, loss, value_loss, drift};
            minibatch_step(l, &u, decay, &norm);
            s.grad_norm += norm;
            for (int i = from; i < from + u.count; i++) s.loss += loss[i], s.value_loss += value_loss[i];
        }
    for (int i = 0; i < B; i++) {
        all.tokens += drift[i].tokens, all.ratio += drift[i].ratio;
        all.outside += drift[i].outside, all.kl += drift[i].kl;
    }
    double tokens = fmax(all.tokens, 1.0);
    s.kl_old = all.kl / tokens, s.clip_fraction = all.outside / tokens;
    s.ratio = all.tokens > 0.0 ? all.ratio / tokens : 1.0;
    s.loss /= steps, s.value_loss /= steps, s.grad_norm /= steps;
    s.lr = (double)o->lr * o->init_lr_frac * decay, s.seconds = seconds_now() - begin;
    experience_free(&e);
    free(loss), free(value_loss), free(drift);
    return s;
}

// One update, every quantity printed once, in the order in which rl_step() computes it (the lesson counts for
// itself: its 1 is step 2 of the list above). The model is untrained and can do no sums, so that the reward
// is a simpler one: 1 when the first byte of the answer is below 128.
static void lesson_10(void) {
    enum { K = 4, NEW = 3 };
    Config small = train_defaults().config;
    small.layers = 1;
    Model m = model_new(small);
    model_init(&m, 10);
    Optimizer optimizer = optimizer_new(&small);
    SampleOptions sample = {.max_new_tokens = NEW, .temperature = 1.0f, .top_k = 0, .top_p = 1.0f};
    Tokens prompt = {0};
    render_prompt(&prompt, "Say something.");
    Rollout* r = generate(&m, &prompt, 1, K, sample, tool_calculator, 10, 0);
    float reward[K], advantage[K], logp[K * NEW], dlogp[K * NEW], after[K][NEW];
    int mask[K * NEW], T1 = longest_rollout(r, K);
    for (int k = 0; k < K; k++) reward[k] = r[k].ids[0] < 128;
    advantages_centered(advantage, reward, K);

    printf("LESSON 10. One update (D1)\n\n");
    printf("1. Rollouts: %d samples of at most %d tokens, prompt of %d tokens shared.\n", K, NEW,
           prompt.length);
    printf("2. Reward: here 1 when the first byte is below 128 (the model is untrained).\n3. Advantage: "
           "reward - mean.\n\n");
    printf("   k  tokens                reward  advantage   sum log pi\n");
    for (int k = 0; k < K; k++) {
        double sum = 0.0;
        int used = printf("%4d ", k);
        for (int t = 0; t < r[k].length; t++) used += printf(" %d", r[k].ids[t]), sum += r[k].logp[t];
        printf("%*s %6.0f %10.4f %12.4f\n", 27 - used, "", (double)reward[k], (double)advantage[k], sum);
    }
    Batch b = {0};
    batch_add_group(&b, &prompt, r, K);
    model_forward(&m, &b);
    scatter_scored(logp, mask, m.acts.logp, r, K, T1);
    double largest = 0.0;
    for (int k = 0; k < K; k++)
        for (int t = 0; t < r[k].length; t++)
            largest = fmax(largest, fabs((double)(r[k].logp[t] - logp[k * T1 + t])));
    double loss = loss_policy_gradient(dlogp, logp, advantage, mask, K, T1, NORM_TOKEN_MEAN);
    int valid = count_masked(mask, K * T1);
    printf("\n4. The same tokens through the training pass: largest difference of a log-\n   probability "
           "from the one recorded while sampling: %g. On-policy, ratio 1.\n",
           largest);
    printf("\n5. Loss = -(sum of advantage x log pi) / valid tokens = %.6f, with %d valid\n   tokens. Its "
           "derivative is -advantage / %d for each token:\n\n",
           loss, valid, valid);
    printf("   k   d loss / d log pi\n");
    for (int k = 0; k < K; k++) {
        printf("%4d ", k);
        for (int t = 0; t < T1; t++) printf(" %9.5f", (double)dlogp[k * T1 + t]);
        printf("\n");
    }
    gather_scored(dlogp, mask, K * T1, 1);
    model_zero_grads(&m);
    model_backward(&m, &b, dlogp);
    double norm = clip_gradient(&m, 1.0), clipped = clip_gradient(&m, 0.0), lr = 1e-3;
    printf("\n6. Backward: gradient norm %.4f, after clipping at 1: %.4f.\n", norm, clipped);
    adamw_step(&m, &optimizer, (float)lr, (AdamOptions){0.9f, 0.95f, 1e-8f, 0.0f});
    printf("7. AdamW, update %ld, learning rate %g.\n\n", optimizer.step, lr);
    printf("8. What it did to the same answers (new samples will be drawn now):\n\n   k  advantage   log pi "
           "before    after   change\n");
    for (int k = 0; k < K; k++) {
        double old = 0.0, new = 0.0;
        score_rollout(after[k], &m, &prompt, &r[k]);
        for (int t = 0; t < r[k].length; t++) old += logp[k * T1 + t], new += after[k][t];
        printf("%4d %10.4f %15.4f %8.4f %+8.4f\n", k, (double)advantage[k], old, new, new - old);
    }
    printf("\nTake away: here each change has the sign of its advantage. Answers that begin\n"
           "alike pull each other along, so that need not be so for every one of them.\n");
    batch_free(&b), rollouts_free(r, K), tokens_free(&prompt), optimizer_free(&optimizer), model_free(&m);
}

/* ==========================================================================================================
 * CHAPTER 11. Evaluation                                                                   (D1, D2 section 6)
 *
 * Question: is the model better, at what, and how sure is that?
 *
 * pass@k: sample k answers; a question counts as passed when at least one of them is right.
 *
 * The direct way samples exactly k answers and looks. That is unbiased, but noisy. If n >= k answers were
 * sampled and c of them are right, then of all C(n,k) ways to choose k of them C(n-c,k) contain no right one,
 * so
 *
 *     pass@k = 1 - C(n-c,k) / C(n,k)                              (Chen et al. 2021)
 *
 * is the average over all choices. Its expectation is exactly 1 - (1-p)^k for answers that are right with
 * probability p. The tempting shortcut 1 - (1 - c/n)^k is biased: an estimate raised to a power is no
 * estimate of the power. The lesson computes both expectations.
 *
 * Majority vote is the other way to use many samples, with no training at all: give the answer that most of
 * them agree on. It needs no verifier, but it can only amplify what the model already answers most often.
 *
 * Traps. (1) pass@k grows with k by itself. It says what the model could find in k tries, not how often it is
 * right in one. (2) Samples of one question are not independent evidence, questions are: the interval below
 * counts questions. (3) None of this means anything when the test questions were trained on. D2 keeps 500 of
 * 12,500 problems apart for that reason. Apart is something to check, and not by comparing bytes: a question
 * leaks with another space, another name, other numbers, or a sentence changed. So there are five kinds of
 * "the same" below, from strict to loose. `./rl train` refuses the two that are certain. `./rl overlap`
 * counts all five and shows examples, because the loose ones are for a person to judge: problems of one
 * template with other numbers may be just what a test should ask.
 * ======================================================================================================== */

// pass@k from n samples of which `correct` are right: 1 - C(n-c,k)/C(n,k), as a product so that no factorial
// overflows: C(n-c,k)/C(n,k) = prod_{i=n-c+1..n} (1 - k/i). Returns 0 for k < 1 or n < 1; k larger than n
// counts as n; `correct` is held between 0 and n. (Chen et al. 2021, arXiv 2107.03374, equation 1)
double pass_at_k(int n, int correct, int k) {
    if (n < 1 || k < 1) return 0.0;
    if (k > n) k = n;
    if (correct < 0) correct = 0;
    if (correct > n) correct = n;
    if (n - correct < k) return 1.0;
    double none = 1.0;
    for (int i = n - correct + 1; i <= n; i++) none *= 1.0 - (double)k / i;
    return 1.0 - none;
}

// The k after this one on the ladder 1, f, f^2, ... that ends with n itself; 0 = that was the last.
static int next_k(int k, int f, int n) { return k >= n ? 0 : k > n / f ? n : k * f; }

typedef struct {
    int questions, samples;
    double* pass;                   // (samples) pass@1 .. pass@samples, means over the questions
    double* squares;                // (samples) sums over the questions of their pass@k squared
    double *low, *high;             // (samples) 95% intervals of pass@k
    int* right;                     // (questions) how many answers to each are right
    double tool_rate, format_rate, length;
    double entropy, kl;             // nats per token; KL(model || reference) in nats per answer
} Evaluation;

static Evaluation evaluation_new(int samples) {
    size_t n = (size_t)samples;
    return (Evaluation){.samples = samples,
                        .pass = allocate(n, sizeof(double)),
                        .squares = allocate(n, sizeof(double)),
                        .low = allocate(n, sizeof(double)),
                        .high = allocate(n, sizeof(double))};
}

static void evaluation_free(Evaluation* e) {
    free(e->pass), free(e->squares), free(e->low), free(e->high), free(e->right);
    *e = (Evaluation){0};
}

// A 95% interval for a mean rate p over n questions, whose rates have the variance `variance`. Samples of one
// question are not independent, questions are: the standard error is sqrt(variance / n). It is translated
// into a number of independent coin flips that would have the same error, and Wilson's interval is computed
// for these, since p +- 1.96 standard errors is wrong near 0 and 1 (at 16 of 16 it would claim certainty).
static void rate_interval(double* low, double* high, double p, double variance, int n) {
    double flips = variance > 0.0 && p > 0.0 && p < 1.0 ? p * (1.0 - p) / (variance / n) : n, z = 1.96;
    double middle = (p + z * z / (2 * flips)) / (1 + z * z / flips);
    double half = z / (1 + z * z / flips) * sqrt(p * (1 - p) / flips + z * z / (4 * flips * flips));
    *low = fmax(0.0, middle - half), *high = fmin(1.0, middle + half);
}

// The mean of the rates of n questions and its 95% interval, from their sum and the sum of their squares. A
// rate from `tries` independent tries has at least the variance of coin flips, mean (1 - mean) / tries: when
// all questions are nearly solved, their few rates may happen to differ by less, which is no certainty. With
// tries = 0 the variance is taken as it was found.
static double mean_rate(double* low, double* high, double sum, double squares, int n, int tries) {
    double mean = sum / n, variance = n > 1 ? (squares - n * mean * mean) / (n - 1) : 0.0;
    if (variance > 0.0 && tries) variance = fmax(variance, mean * (1.0 - mean) / tries);
    rate_interval(low, high, mean, variance, n);
    return mean;
}

// One more question, with n >= samples answers, of which `right` are right.
static void evaluation_add(Evaluation* e, int n, int right) {
    for (int k = 1; k <= e->samples; k++) {
        double rate = pass_at_k(n, right, k);
        e->pass[k - 1] += rate;
        if (k == 1) rate = (double)right / n;   // the same, without the rounding of the product
        e->squares[k - 1] += pow(rate, 2);
    }
    e->right = enlarge(e->right, (size_t)e->questions + 1, sizeof(int));
    e->right[e->questions++] = right;
}

// Turns the sums into means, and finds the intervals. Of the samples, samples / k disjoint groups of k could
// be made, so pass@k is worth so many independent tries. (The k of the loop is one less.) For pass@1 they are
// many, and the shares show their own variance.
static void evaluation_finish(Evaluation* e) {
    for (int k = 0; k < e->samples; k++)
        e->pass[k] = mean_rate(&e->low[k], &e->high[k], e->pass[k], e->squares[k], e->questions,
                               k ? e->samples / (k + 1) : 0);
}

// KL(model || reference), summed over the answers to question `index`. By k1: far from the reference, k3's
// exponential lets one answer decide (chapter 8).
typedef struct { const Question* questions; const Rollout* rollouts; double* kl; int K; } KlTask;

static void kl_group(Model* reference, int index, void* context) {
    const KlTask* task = context;
    const Rollout* r = task->rollouts + (size_t)index * task->K;
    int K = task->K, T1 = longest_rollout(r, K);
    float* logp_ref = allocate((size_t)K * T1, sizeof(float));
    int* mask = allocate((size_t)K * T1, sizeof(int));
    read_group(logp_ref, mask, reference, &task->questions[index].prompt, r, K, T1);
    for (int k = 0; k < K; k++)
        for (int t = 0; t < r[k].length; t++)
            if (r[k].mask[t])
                task->kl[index] += (double)r[k].logp[t] - logp_ref[k * T1 + t];
    free(logp_ref), free(mask);
}

enum { EVAL_ROWS = 1024 };           // rollouts decoded together

// `samples` answers to each of the questions from .. from + count - 1, which draw from streams of their own:
// an answer is the same in whatever pieces the questions are taken.
static Rollout* answer_questions(Model* m, const Questions* q, int from, int count, int samples,
                                 SampleOptions sample, uint64_t seed) {
    Tokens* prompts = allocate((size_t)count, sizeof(Tokens));
    for (int i = 0; i < count; i++) prompts[i] = q->list[from + i].prompt;
    Rollout* rollouts = generate(m, prompts, count, samples, sample, tool_calculator, seed, (uint64_t)from);
    free(prompts);
    return rollouts;
}

// Samples `samples` answers to each of the first `count` questions and grades them. With a reference (else
// NULL) the distance to it is measured too.
static Evaluation evaluate_model(Model* m, const Questions* q, int count, int samples, SampleOptions sample,
                                 const RewardKind* kind, Model* reference, uint64_t seed) {
    count = min_int(count, q->count);
    Evaluation e = evaluation_new(samples);
    int together = max_int(1, EVAL_ROWS / samples);
    long sampled = 0;
    float* reward = allocate((size_t)samples, sizeof(float));
    for (int from = 0; from < count; from += together) {
        int B = min_int(together, count - from);
        Rollout* rollouts = answer_questions(m, q, from, B, samples, sample, seed);
        double* kl = allocate((size_t)B, sizeof(double));
        KlTask task = {q->list + from, rollouts, kl, samples};
        if (reference) run_tasks(reference, B, 0, kl_group, &task);
        for (int i = 0; i < B; i++) {
            Group g = judge_group(reward, rollouts + i * samples, samples, q->list[from + i].truth, kind);
            evaluation_add(&e, samples, g.right);
            e.tool_rate += g.tool, e.format_rate += g.format, e.length += (double)g.tokens;
            e.entropy -= g.logp, e.kl += kl[i], sampled += g.sampled;
        }
        free(kl);
        rollouts_free(rollouts, B * samples);
    }
    double n = (double)count * samples;
    e.tool_rate /= n, e.format_rate /= n, e.length /= n, e.kl /= n;
    e.entropy /= sampled ? (double)sampled : 1.0;
    evaluation_finish(&e);
    free(reward);
    return e;
}

// ---- majority vote: the answer that most of n answers agree on, with no training at all (D2 section 1)

// Index of the first answer of the largest group of equal answers; empty answers do not vote. -1 when nobody
// votes.
static int majority_vote(const char* const* answers, int n) {
    int best = -1, best_votes = 0;
    for (int i = 0; i < n; i++) {
        int votes = 0;
        for (int j = 0; j < n && *answers[i]; j++)
            votes += *answers[j] && answers_equal(answers[i], answers[j]);
        if (votes > best_votes) best = i, best_votes = votes;
    }
    return best;
}

// The share of right votes of one question. Its n answers ("" = none was found) make n / votes disjoint
// groups, and each group votes: so all n samples have a say in what two votes are worth, too. What is left
// over is not used. *none (out): the share of groups in which nobody voted; these are not right. With fewer
// answers than votes there is no group, and both are 0.
//
// A tie goes to the answer that came first, and which of the tied ones comes first is chance: a fair draw. So
// two votes are as good as one, except that the second can speak when the first is silent.
static double vote_accuracy(double* none, const char* const* answers, int n, int votes, const char* truth) {
    int groups = votes > 0 ? n / votes : 0, right = 0, silent = 0;
    for (int g = 0; g < groups; g++) {
        const char* const* group = answers + (size_t)g * votes;
        int winner = majority_vote(group, votes);
        silent += winner < 0;
        right += winner >= 0 && answers_equal(group[winner], truth);
    }
    *none = groups ? (double)silent / groups : 0.0;
    return groups ? (double)right / groups : 0.0;
}

// How often the vote of n answers is right when each is right with probability p and wrong answers are spread
// evenly over `others` values. By playing it.
static double vote_sampled(double p, int others, int n, int games, Rng* rng) {
    double won = 0.0;
    for (int g = 0; g < games; g++) {
        int votes[64] = {0}, most = 0, tied = 0;
        for (int i = 0; i < n; i++) votes[random_uniform(rng) < p ? 0 : 1 + random_int(rng, others)]++;
        for (int i = 0; i <= others; i++) most = max_int(most, votes[i]);
        for (int i = 0; i <= others; i++) tied += votes[i] == most;
        if (votes[0] == most) won += 1.0 / tied;
    }
    return won / games;
}

// ---- did training teach, or only elicit? Two models on the same questions (D3 section 7)
//
// D3 leaves it open whether RL gives a model new abilities or makes frequent what was rare. The question can
// be put to pass@k: for k = 1 it says what a model does, for a large k what is within its reach. Training
// that lifts the first and not the second has elicited; when the curves even cross, it has narrowed the model
// (Yue et al. 2025, arXiv 2504.13837). Traps: where the model before reaches everything, nothing else can be
// seen, and harder questions are needed; one of 256 answers may be right by luck, since the verifier sees the
// number only; "not in 256 answers" is not "never".

// pass@k after minus before, on the same questions with the same number of samples, and its 95% interval. The
// two rates' own intervals say how far each may be off, and the correlation r over the questions how much of
// it they have in common (Newcombe 1998, Zou and Donner 2008):
//
//     low  = difference - sqrt(a^2 - 2 r a b + b^2),    a = after - its low,  b = before's high - before
//     high = difference + sqrt(...)  with                a = its high - after, b = before - before's low
//
// Not difference +- 1.96 standard errors: if both solve everything, these would be 0.
static double pass_difference(double* low, double* high, const Evaluation* before, const Evaluation* after,
                              int k) {
    double mean[2] = {before->pass[k - 1], after->pass[k - 1]}, xx = 0.0, yy = 0.0, xy = 0.0;
    for (int i = 0; i < before->questions; i++) {
        double x = pass_at_k(before->samples, before->right[i], k) - mean[0],
               y = pass_at_k(after->samples, after->right[i], k) - mean[1];
        xx += x * x, yy += y * y, xy += x * y;
    }
    double r = xx * yy > 0.0 ? xy / sqrt(xx * yy) : 0.0;
    double a = mean[1] - after->low[k - 1], b = before->high[k - 1] - mean[0];
    double c = after->high[k - 1] - mean[1], d = mean[0] - before->low[k - 1];
    *low = mean[1] - mean[0] - sqrt(fmax(0.0, a * a - 2.0 * r * a * b + b * b));
    *high = mean[1] - mean[0] + sqrt(fmax(0.0, c * c - 2.0 * r * c * d + d * d));
    return mean[1] - mean[0];
}

// The first k at which the other one of two curves is above than at the beginning; 0 = they do not cross.
// What differs by less than rounding does not count. a, b (n): pass@1 ... pass@n.
static int curves_cross(const double* a, const double* b, int n) {
    double first = 0.0;
    for (int k = 1; k <= n; k++) {
        double difference = a[k - 1] - b[k - 1];
        if (fabs(difference) < 1e-12) continue;
        if (first == 0.0) first = difference;
        if (first * difference < 0.0) return k;
    }
    return 0;
}

// ---- keeping train and test apart

// When are two questions the same? From strict to loose; each one includes those above it.
enum {
    SAME_TEXT,           // byte for byte
    SAME_WORDS,          // without case, spaces and punctuation
    SAME_BUT_NAMES,      // and every word with a capital letter is "@": about somebody else
    SAME_BUT_NUMBERS,    // and every number is "#": one template, filled in anew
    NEARLY_SAME,         // many of the same runs of words: see find_near()
    LIKENESSES
};

// + - * / and the like carry the meaning of a formula, so they count as words. The hyphen of "two-digit"
// doesn't.
static int is_sign(const char* text, const char* p) {
    int hyphen = *p == '-' && p > text && is_letter(p[-1]) && is_letter(p[1]);
    return *p && strchr("+-*/=<>^%", *p) && !hyphen;
}

// The point of 3.5 and the comma of 1,000 belong to the number.
static int is_within_number(const char* text, const char* p) {
    if (p == text || !is_digit(p[-1]) || !is_digit(p[1])) return 0;
    return *p == '.' || (*p == ',' && is_thousands_comma(text, p));
}

// How many bytes at p stand between words: spaces and punctuation, also dashes and quotes. 0 = none.
static int gap_length(const char* text, const char* p) {
    if (!strncmp(p, "\xE2\x80", 2) || !strncmp(p, "\xE2\x81", 2)) return p[2] ? 3 : 2;
    if (!strncmp(p, "\xC2\xA0", 2)) return 2;   // a space that does not break
    return (unsigned char)*p < 0x80 && !is_letter(*p) && !is_digit(*p) && !is_sign(text, p) &&
           !is_within_number(text, p);
}

// A question reduced to what makes it the same question: its words, with single spaces between them.
static void reduce_question(Text* out, const char* question, int likeness) {
    text_append(out, "", 0);
    if (likeness == SAME_TEXT) { text_append(out, question, strlen(question)); return; }
    for (const char *p = question, *end; *p; p = end) {
        int gap = gap_length(question, p), name = likeness >= SAME_BUT_NAMES && isupper((unsigned char)*p);
        end = p + (gap ? gap : 1);
        if (gap) continue;
        if (!is_sign(question, p))
            while (*end && !gap_length(question, end) && !is_sign(question, end)) end++;
        if (out->length) text_append(out, " ", 1);
        if (name) { text_append(out, "@", 1); continue; }
        while (p < end) {
            char c = (char)tolower((unsigned char)*p);
            int number = likeness >= SAME_BUT_NUMBERS && is_digit(c);
            if (c != ',') text_append(out, number ? "#" : &c, 1);
            do p++; while (number && p < end && (is_digit(*p) || *p == '.' || *p == ','));
        }
    }
}

typedef struct { char* text; int question; } Key;

static int compare_keys(const void* a, const void* b) {
    const Key *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order ? order : x->question - y->question;
}

// For each question of b the first one of a that is the same: twin (b->count), -1 = none. NEARLY_SAME is
// find_near()'s. A question without a word is the same as none.
static void find_twins(int* twin, const Problems* a, const Problems* b, int likeness) {
    Key* keys = allocate((size_t)a->count, sizeof(Key));
    for (int i = 0; i < a->count; i++) {
        Text t = {0};
        reduce_question(&t, a->list[i].question, likeness);
        keys[i] = (Key){t.data, i};
    }
    qsort(keys, (size_t)a->count, sizeof(Key), compare_keys);
    for (int i = 0; i < b->count; i++) {
        Text t = {0};
        int low = 0, high = a->count;      // the first key that is not below t
        reduce_question(&t, b->list[i].question, likeness);
        while (low < high) {
            int middle = low + (high - low) / 2;
            if (strcmp(keys[middle].text, t.data) < 0) low = middle + 1;
            else high = middle;
        }
        int found = t.length && low < a->count && !strcmp(keys[low].text, t.data);
        twin[i] = found ? keys[low].question : -1;
        text_free(&t);
    }
    for (int i = 0; i < a->count; i++) free(keys[i].text);
    free(keys);
}

// How many questions of b also stand in a.
static int count_overlap(const Problems* a, const Problems* b, int likeness) {
    int* twin = allocate((size_t)b->count, sizeof(int));
    int shared = 0;
    find_twins(twin, a, b, likeness);
    for (int i = 0; i < b->count; i++) shared += twin[i] >= 0;
    free(twin);
    return shared;
}

// Near duplicates share runs of words (n-grams). A question of 30 words has 23 runs of 8 words; one word
// changed in the middle breaks 8 of them and leaves 15: 65%. Unrelated problems rarely share one. So: near
// is a question of which half of all runs of 8 words stand in one and the same question of the other file.
// What has fewer than 8 words is compared as a whole only.
//
// Comparing every pair would take 500 x 12,000 looks at long texts. Instead, all runs of a are sorted by a
// hash of 64 bits, and each run of b is looked up. (That two different runs share a hash is as good as
// impossible: 10^6 against 10^5 runs, 10^11 pairs / 2^64 = 5e-9.)
enum { GRAM_WORDS = 8, GRAM_LOOKS = 256 };   // of a run that is everywhere, so many places are looked at
static const double NEAR_SHARE = 0.5;

typedef struct { uint64_t hash; int question; } Gram;
typedef struct { Gram* list; size_t count, capacity; } Grams;

static int compare_grams(const void* a, const void* b) {
    const Gram *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return x->question - y->question;
}

// Appends the runs of one question, each once.
static void add_grams(Grams* g, const char* question, int index) {
    Text t = {0};
    size_t begin = g->count, kept = begin;
    int words = 0;
    reduce_question(&t, question, SAME_WORDS);
    for (const char *p = t.data, *from = p; *p; p += *p == ' ') {
        p += strcspn(p, " ");
        if (++words < GRAM_WORDS) continue;
        uint64_t hash = 0;
        for (const char* q = from; q < p; q++) hash = (hash ^ (unsigned char)*q) * 0x100000001B3u;   // FNV-1a
        if (g->count == g->capacity) {
            g->capacity = 2 * g->capacity + 64;
            g->list = enlarge(g->list, g->capacity, sizeof(Gram));
        }
        g->list[g->count++] = (Gram){mix_u64(hash), index};
        from += strcspn(from, " ") + 1;
    }
    if (g->count > begin) qsort(g->list + begin, g->count - begin, sizeof(Gram), compare_grams);
    for (size_t i = begin; i < g->count; i++)
        if (i == begin || g->list[i].hash != g->list[i - 1].hash) g->list[kept++] = g->list[i];
    g->count = kept;
    text_free(&t);
}

static size_t first_gram(const Grams* g, uint64_t hash) {   // the first one that is not below hash
    size_t low = 0, high = g->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (g->list[middle].hash < hash) low = middle + 1;
        else high = middle;
    }
    return low;
}

// For each question of b the one of a with which it shares the most runs: twin (b->count), -1 = there is none
// with NEAR_SHARE of its runs; share (b->count). Time: linear in the length of b and nearly so in that of a.
static void find_near(int* twin, double* share, const Problems* a, const Problems* b) {
    Grams all = {0}, own = {0};
    int *shared = allocate((size_t)a->count, sizeof(int)), *touched = allocate((size_t)a->count, sizeof(int));
    for (int i = 0; i < a->count; i++) add_grams(&all, a->list[i].question, i);
    if (all.count) qsort(all.list, all.count, sizeof(Gram), compare_grams);
    for (int i = 0; i < b->count; i++) {
        int best = -1, count = 0;
        own.count = 0;
        add_grams(&own, b->list[i].question, i);
        for (size_t k = 0; k < own.count; k++) {
            size_t from = first_gram(&all, own.list[k].hash), to = from;
            for (; to < all.count && to - from < GRAM_LOOKS && all.list[to].hash == own.list[k].hash; to++) {
                int q = all.list[to].question;
                if (!shared[q]++) touched[count++] = q;
                if (best < 0 || shared[q] > shared[best]) best = q;
            }
        }
        share[i] = best < 0 ? 0.0 : (double)shared[best] / (double)own.count;
        twin[i] = share[i] >= NEAR_SHARE ? best : -1;
        while (count) shared[touched[--count]] = 0;
    }
    free(all.list), free(own.list), free(shared), free(touched);
}

// The strictest likeness that each question of b has with one of a (LIKENESSES: with none), and which one.
typedef struct { int likeness, twin; double share; } Match;

static Match* match_questions(const Problems* a, const Problems* b) {
    Match* match = allocate((size_t)b->count, sizeof(Match));
    int* twin = allocate((size_t)b->count, sizeof(int));
    double* share = allocate((size_t)b->count, sizeof(double));
    for (int i = 0; i < b->count; i++) match[i] = (Match){LIKENESSES, -1, 0.0};
    for (int likeness = SAME_TEXT; likeness < LIKENESSES; likeness++) {
        if (likeness == NEARLY_SAME) find_near(twin, share, a, b);
        else find_twins(twin, a, b, likeness);
        for (int i = 0; i < b->count; i++) {
            if (match[i].likeness < LIKENESSES || twin[i] < 0) continue;
            match[i] = (Match){likeness, twin[i], share[i]};
        }
    }
    free(twin), free(share);
    return match;
}

static double binomial(int n, int c, double p) {
    double x = 1.0;
    for (int i = 0; i < c; i++) x *= (double)(n - i) / (i + 1);
    return x * pow(p, c) * pow(1 - p, n - c);
}

static void lesson_11(void) {
    const int n = 16, ks[] = {1, 2, 4, 8, 16};
    printf("LESSON 11. Evaluation (D1, D2 section 6)\n\n");
    printf("pass@k from n = %d answers of which c are right: 1 - C(n-c,k)/C(n,k).\n\n      c", n);
    for (int i = 0; i < 5; i++) printf("   pass@%-2d", ks[i]);
    printf("\n");
    for (int c = 0; c <= 3; c++) {
        printf("  %5d", c);
        for (int i = 0; i < 5; i++) printf(" %9.4f", pass_at_k(n, c, ks[i]));
        printf("\n");
    }
    printf("\nIs it unbiased? For answers right with probability p = 0.2 the truth is\n1 - 0.8^k. The exact "
           "expectation over c (17 cases, binomial) of two estimators:\n\n");
    printf("     k     truth 1-C(n-c,k)/C(n,k)      bias    1-(1-c/n)^k      bias\n");
    double worst = 0.0;
    for (int i = 0; i < 5; i++) {
        double truth = 1 - pow(0.8, ks[i]), good = 0.0, naive = 0.0;
        for (int c = 0; c <= n; c++) {
            good += binomial(n, c, 0.2) * pass_at_k(n, c, ks[i]);
            naive += binomial(n, c, 0.2) * (1 - pow(1 - (double)c / n, ks[i]));
        }
        printf("  %4d  %8.4f  %16.4f  %8.4f  %13.4f  %8.4f\n", ks[i], truth, good,
               fabs(good - truth) < 5e-13 ? 0.0 : good - truth, naive, naive - truth);
        worst = fmin(worst, naive - truth);
    }
    printf("\nThe shortcut says too little, by up to %.3f here: an estimate raised to a power\nis no "
           "estimate of the power.\n",
           -worst);

    const char* const answers[] = {"83", "38", "\\frac{166}{2}", "", "83.0", "41", "38", "83"};
    int winner = majority_vote(answers, 8);
    printf("\nMajority vote of 83, 38, \\frac{166}{2}, (none), 83.0, 41, 38, 83: %s.\n", answers[winner]);
    printf("\nHow often the vote is right, when one answer is right with probability p and the\nwrong ones "
           "are spread over 9 values (20000 games each):\n\n  votes    p = 0.15   p = 0.30   p = 0.45\n");
    Rng rng = {11};
    for (int i = 0; i < 5; i++) {
        printf("  %5d", ks[i]);
        for (int j = 0; j < 3; j++) printf("  %9.3f", vote_sampled(0.15 + 0.15 * j, 9, ks[i], 20000, &rng));
        printf("\n");
    }
    printf("\nD2's ladder climbs from 15.2%% to 52%% this way (ten votes and a chain of\nthought), for %.0f "
           "times the time: 862.6 minutes against 10.1.\n",
           862.6 / 10.1);

    const char *train = "data/train.jsonl", *test = "data/test.jsonl";
    printf("\nTrain and test kept apart:\n\n");
    if (!file_exists(train) || !file_exists(test)) printf("  (skipped: %s or %s is not here)\n", train, test);
    else {
        Problems a = load_problems(train), b = load_problems(test);
        printf("  %s: %d questions, %s: %d questions\n", train, a.count, test, b.count);
        printf("  the same question in both                        %d\n", count_overlap(&a, &b, SAME_WORDS));
        printf("  the same question about somebody else            %d\n",
               count_overlap(&a, &b, SAME_BUT_NAMES));
        problems_free(&a), problems_free(&b);
    }
}

/* ==========================================================================================================
 * CHAPTER 12. Recipes                                                                          (D3 section 8)
 *
 * Question: in which order are the tools of chapters 9 and 10 used on a real model, and on how much data?
 *
 * A recipe is a list of stages. Each stage starts from the checkpoint of the one before. Three recipes mark
 * three years. What changes is not the algorithm but the order and the share of the work: in InstructGPT and
 * Tulu 3 reinforcement learning is the last polish, in DeepSeek R1 it is the main course, and supervised
 * training comes back as the third stage, on data that the RL checkpoint wrote itself.
 *
 * The miniature of this project is the shortest recipe that shows the effect: a supervised stage on a mixed
 * crowd's demonstrations, then RLVR.
 *
 * The other stages are here in miniature too, on the same model and the same questions, in the order in which
 * they need each other: pairs of answers and the judges that make them; one trainer that turns pairs into a
 * reward model, an outcome model or, with DPO, into a policy; best-of-n, which needs no pairs, only a score.
 * Their losses are chapter 9's. What is new is what surrounds a loss: where the data comes from, which tokens
 * it sees, and how to find out whether the result can be trusted.
 * ======================================================================================================== */

// ---- preference pairs
//
// Chapter 9's judgements of the third kind: not "this answer is worth 1" but "this answer is better than that
// one". A record is a question with two answers, as TRL and the data sets on the Hugging Face hub have it:
//
//     {"prompt": "...", "chosen": "...", "rejected": "..."}            "question" is as good as "prompt"
//     {"chosen":   [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}],
//      "rejected": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]}
//
// In the second form the user's message may also stand in "prompt", once for both. Wherever it stands, it
// must be the same: Bradley-Terry compares two answers to ONE question, r(x,y_w) - r(x,y_l); with two
// different x the difference means nothing. A conversation is one question and one answer. Of several rounds
// it would have to be said which of the assistant's messages are judged, so they are refused.
//
// Trap: a pair says nothing about how good its answers are. Both may be wrong, or both right.
enum { CHOSEN, REJECTED };

typedef struct {
    char *question, *answer[2];      // answers as in our data: a call of the tool is <<17+26=43>>
    Tokens tokens[2];                // the two conversations, see render_pairs()
    float reference[2];              // log pi_ref of the two answers, nats; 0 for a reward model
} Pair;
typedef struct { Pair* list; int count, capacity; } Pairs;

static void pair_free(Pair* p) {
    free(p->question);
    for (int side = CHOSEN; side <= REJECTED; side++) free(p->answer[side]), tokens_free(&p->tokens[side]);
}

static void pairs_free(Pairs* p) {
    for (int i = 0; i < p->count; i++) pair_free(&p->list[i]);
    free(p->list);
    *p = (Pairs){0};
}

static void pairs_add(Pairs* p, const char* question, const char* chosen, const char* rejected) {
    if (p->count == p->capacity) {
        p->capacity = 2 * p->capacity + 64;
        p->list = enlarge(p->list, (size_t)p->capacity, sizeof(Pair));
    }
    p->list[p->count++] = (Pair){copy_text(question), {copy_text(chosen), copy_text(rejected)}, {{0}}, {0}};
}

// What user and assistant say in one field of a record; NULL = nothing.
typedef struct { const char *user, *assistant; } Exchange;

static void read_message(Exchange* e, const Json* message, const char* name, int line, const char* path) {
    const Json *role = json_get(message, "role"), *content = json_get(message, "content");
    if (!role || role->type != JSON_STRING || !content || content->type != JSON_STRING)
        fail(2, "%s, line %d: a message in \"%s\" is not {\"role\": a text, \"content\": a text}", path, line,
             name);
    int user = !strcmp(role->string, "user");
    const char** place = user ? &e->user : &e->assistant;
    if (!user && strcmp(role->string, "assistant"))
        fail(2, "%s, line %d: a message in \"%s\" has the role \"%s\"; only user and assistant can be read",
             path, line, name, role->string);
    if (*place || (user && e->assistant))
        fail(2, "%s, line %d: \"%s\" has more than one round; a pair is one question (user) with two answers "
                "(assistant), so keep the round that is judged", path, line, name);
    if (!*content->string) fail(2, "%s, line %d: a message in \"%s\" is empty", path, line, name);
    *place = content->string;
}

// A field that is a text or an array of messages. A side must have an answer, a prompt must have none.
static Exchange read_exchange(const Json* record, const char* name, int is_side, const char* path) {
    const Json* field = json_get(record, name);
    Exchange e = {NULL, NULL};
    if (!field && !is_side) return e;
    if (!field || field->type != JSON_ARRAY) {
        const char* text = record_text(record, name, path);
        return is_side ? (Exchange){NULL, text} : (Exchange){text, NULL};
    }
    for (const Json* m = field->child; m; m = m->next) read_message(&e, m, name, record->line, path);
    if (is_side && !e.assistant)
        fail(2, "%s, line %d: \"%s\" has no message of the assistant", path, record->line, name);
    if (!is_side && (e.assistant || !e.user))
        fail(2, "%s, line %d: \"%s\" is not one message of the user", path, record->line, name);
    return e;
}

// Adds the pair of one record, or ends the program with what is wrong with it.
static void read_pair(Pairs* p, const Json* record, const char* path) {
    static const char* const names[] = {"chosen", "rejected"};
    const char* asked = json_get(record, "prompt") ? "prompt" : "question";
    Exchange prompt = read_exchange(record, asked, 0, path), side[2];
    for (int i = CHOSEN; i <= REJECTED; i++) side[i] = read_exchange(record, names[i], 1, path);
    const char* question = prompt.user ? prompt.user : side[CHOSEN].user;
    if (!question)
        fail(2, "%s, line %d: the pair has no question: a field \"prompt\" or \"question\", or a message of "
                "the user in \"chosen\" and \"rejected\"", path, record->line);
    for (int i = CHOSEN; i <= REJECTED; i++) {
        if (!side[i].user && !prompt.user)
            fail(2, "%s, line %d: \"%s\" has no message of the user, the other side has one", path,
                 record->line, names[i]);
        if (side[i].user && strcmp(side[i].user, question))
            fail(2, "%s, line %d: \"%s\" answers another question than \"%s\" asks; both sides of a pair "
                    "answer the same one", path, record->line, names[i], prompt.user ? "prompt" : "chosen");
    }
    if (!strcmp(side[CHOSEN].assistant, side[REJECTED].assistant))
        fail(2, "%s, line %d: \"chosen\" and \"rejected\" are the same answer; nothing is preferred", path,
             record->line);
    pairs_add(p, question, side[CHOSEN].assistant, side[REJECTED].assistant);
}

static Pairs load_pairs(const char* path) {
    Json* records = load_records(path);
    Pairs p = {0};
    for (const Json* j = records->child; j; j = j->next) read_pair(&p, j, path);
    if (!p.count)
        fail(2, "%s has no pairs in it: lines like {\"question\": ..., \"chosen\": ..., \"rejected\": ...} "
                "were expected", path);
    json_free(records);
    return p;
}

static void pairs_to_json(Text* out, const Pairs* p) {
    text_append(out, "", 0);
    for (int i = 0; i < p->count; i++) {
        const char* const field[] = {p->list[i].question, p->list[i].answer[CHOSEN],
                                     p->list[i].answer[REJECTED]};
        static const char* const names[] = {"{\"question\": ", ", \"chosen\": ", ", \"rejected\": "};
        for (int k = 0; k < 3; k++) text_printf(out, "%s", names[k]), json_append_string(out, field[k]);
        text_printf(out, "}\n");
    }
}

// Turns texts into tokens. Pairs with a side that does not fit the context are counted and left out.
static void render_pairs(Pairs* p, int context, const char* path) {
    int count = 0;
    for (int i = 0; i < p->count; i++) {
        Pair pair = p->list[i];
        for (int side = CHOSEN; side <= REJECTED; side++)
            render_conversation(&pair.tokens[side], pair.question, pair.answer[side]);
        if (pair.tokens[CHOSEN].length <= context && pair.tokens[REJECTED].length <= context)
            p->list[count++] = pair;
        else pair_free(&pair);
    }
    if (count < p->count)
        printf("%s: %d of %d pairs have a side longer than the context of %d tokens and are skipped\n", path,
               p->count - count, p->count, context);
    if (!count) fail(2, "%s: no pair fits the model's context of %d tokens", path, context);
    p->count = count;
}

// ---- where pairs come from: rollouts and a judge
//
// InstructGPT's pairs come from people who rank the model's answers. Here a program ranks them: sample K
// answers to a question (chapter 6), give each a score, and write down who beats whom:
//
//     score = a reward + b length                                 length in tokens of the answer
//
// a = 1, b = 0 is the verifier of chapter 5. A judge that looks at the length, alone (a = 0, b = 1) or also
// (a = 1, b = 1/20), is a bad one, on purpose: D3 section 5 is about what happens to a policy that is trained
// to please it. A demonstration, the answer that stands in the data file, may compete too. A judgement can be
// turned around by chance (noise): people agree with each other in three of four cases (Ouyang et al. 2022:
// 73%).
//
// Traps. (1) A question whose answers all have the same score gives no pair: easy and hopeless questions are
// missing. (2) If only demonstrations win, a reward model can learn to tell who wrote an answer instead of
// whether it is right. (3) Length. When right answers are longer on average, so are the chosen ones.

enum { DEMO_NONE, DEMO_COMPETES, DEMO_WINS };   // DEMO_WINS: no other answer may win

typedef struct { const char *name, *what; int demonstration; float reward, length; } Judge;

static const Judge judges[] = {
    {"verifier", "right answers beat wrong ones", DEMO_NONE, 1.0f, 0.0f},
    {"demos", "the demonstration beats wrong answers", DEMO_WINS, 1.0f, 0.0f},
    {"mixed", "verifier; the demonstration competes", DEMO_COMPETES, 1.0f, 0.0f},
    {"longer", "the longer answer wins, right or wrong", DEMO_NONE, 0.0f, 1.0f},
    {"shorter", "the shorter answer wins, right or wrong", DEMO_NONE, 0.0f, -1.0f},
    {"wordy", "right beats wrong, but 20 tokens more make up for it", DEMO_NONE, 1.0f, 0.05f},
};

static const Judge* find_judge(const char* name) {
    enum { JUDGES = sizeof judges / sizeof *judges };
    const char* names[JUDGES + 1] = {NULL};
    for (int i = 0; i < JUDGES; i++) names[i] = judges[i].name;
    return &judges[choose(name, names, "judge")];
}

// K rollouts of each question, EVAL_ROWS at a time: rollout k of question i at [i*K + k]. rollouts_free()
// frees all.
static Rollout* answer_all_questions(Model* m, const Questions* q, int K, SampleOptions sample,
                                     uint64_t seed) {
    Rollout* all = allocate((size_t)q->count * (size_t)K, sizeof(Rollout));
    int together = max_int(1, EVAL_ROWS / K);
    for (int from = 0; from < q->count; from += together) {
        int B = min_int(together, q->count - from);
        Rollout* some = answer_questions(m, q, from, B, K, sample, seed);
        memcpy(all + (size_t)from * K, some, (size_t)B * K * sizeof(Rollout));
        free(some);
    }
    return all;
}

// The reward of each of K answers to one question.
static void score_answers(float* score, const Rollout* rollouts, int K, const Question* q,
                          const RewardKind* kind) {
    for (int k = 0; k < K; k++) {
        Text text = rollout_text(&rollouts[k]);
        score[k] = kind->reward(text.data, q->truth);
        text_free(&text);
    }
}

// A rollout as the answer of a data file; to be freed. NULL when it cannot be one: it was cut off, is empty
// or no UTF-8, or would be read back as other tokens or with another mask (a call that the tool did not
// answer, an output that the model wrote itself). Then training would see something that was never sampled.
static char* rollout_answer(const Rollout* r, const Question* q) {
    Text text = {0};
    Tokens again = {0};
    int start = q->prompt.length, same = 1;
    text_append(&text, "", 0);
    for (int t = 0; t < r->length; t++) {
        char byte = (char)r->ids[t];
        if (r->ids[t] < 256) text_append(&text, &byte, 1);
        else if (r->ids[t] == PYTHON_START) text_append(&text, "<<", 2);
        else if (r->ids[t] == OUTPUT_START) text_append(&text, "=", 1);
        else if (r->ids[t] == OUTPUT_END) text_append(&text, ">>", 2);
    }
    render_conversation(&again, q->question, text.data);
    same = r->finished && text.length && again.length == start + r->length;
    for (int t = 0; same && t < r->length; t++)
        same = again.ids[start + t] == r->ids[t] && again.mask[start + t] == r->mask[t];
    for (const char *p = text.data, *end = p + text.length; same && p < end; p += utf8_length(p, end))
        if (!utf8_length(p, end)) same = 0;
    tokens_free(&again);
    if (!same) text_free(&text);
    return text.data;
}

// The answer that stands in the data file, as if it had been sampled. ids and mask are to be freed.
static Rollout demonstration(const Question* q) {
    Tokens t = {0};
    int start = q->prompt.length;
    render_conversation(&t, q->question, q->solution);
    Rollout r = {.length = t.length - start, .finished = 1};
    r.ids = allocate((size_t)r.length, sizeof(int)), r.mask = allocate((size_t)r.length, sizeof(int));
    memcpy(r.ids, t.ids + start, (size_t)r.length * sizeof(int));
    memcpy(r.mask, t.mask + start, (size_t)r.length * sizeof(int));
    tokens_free(&t);
    return r;
}

// How pairs are made from the rollouts of a question.
typedef struct {
    const Judge* judge;
    const RewardKind* kind;          // the verifier
    int per_question;                // at most so many pairs of one question
    float noise;                     // probability that a judgement is turned around
    uint64_t seed;                   // of the choice of pairs and of the noise
} PairRules;

// Adds the pairs of question number `index`, which has the rollouts (K): at most per_question of all (winner,
// loser), chosen at random. Of answers with the same text only the last one counts, so that a demonstration
// stays when it was sampled too.
static void judge_pairs(Pairs* p, const Question* q, int index, const Rollout* rollouts, int K,
                        const PairRules* rules) {
    const Judge* judge = rules->judge;
    int n = K + (judge->demonstration != DEMO_NONE), count = 0;
    Rollout* all = allocate((size_t)K + 1, sizeof(Rollout));
    char** answer = allocate((size_t)K + 1, sizeof(char*));
    float* score = allocate((size_t)K + 1, sizeof(float));
    int *pair = allocate((size_t)n * n, sizeof(int)), *order = allocate((size_t)n * n, sizeof(int));
    Rng rng = random_stream(rules->seed, (uint64_t)index, 0);
    memcpy(all, rollouts, (size_t)K * sizeof(Rollout));
    all[K] = demonstration(q);
    score_answers(score, all, K + 1, q, rules->kind);
    for (int k = 0; k < n; k++) {
        score[k] = judge->reward * score[k] + judge->length * (float)all[k].length;
        answer[k] = rollout_answer(&all[k], q);
        for (int j = 0; j < k && answer[k]; j++)
            if (answer[j] && !strcmp(answer[j], answer[k])) free(answer[j]), answer[j] = NULL;
    }
    for (int w = judge->demonstration == DEMO_WINS ? K : 0; w < n; w++)
        for (int l = 0; l < n; l++)
            if (answer[w] && answer[l] && score[w] > score[l]) pair[count++] = w * n + l;
    shuffle(order, count, &rng);
    for (int i = 0; i < count && i < rules->per_question; i++) {
        int w = pair[order[i]] / n, l = pair[order[i]] % n, turned = random_uniform(&rng) < rules->noise;
        pairs_add(p, q->question, answer[turned ? l : w], answer[turned ? w : l]);
    }
    for (int k = 0; k < n; k++) free(answer[k]);
    free(all[K].ids), free(all[K].mask);
    free(all), free(answer), free(score), free(pair), free(order);
}

// A random choice of `most` pairs (0: all of them), in the order of the file.
static void limit_pairs(Pairs* p, int most, uint64_t seed) {
    if (!most || p->count <= most) return;
    int *order = allocate((size_t)p->count, sizeof(int)), *stays = allocate((size_t)p->count, sizeof(int));
    int n = 0;
    Rng rng = random_stream(seed, 0, 1);
    shuffle(order, p->count, &rng);
    for (int i = 0; i < most; i++) stays[order[i]] = 1;
    for (int i = 0; i < p->count; i++)
        if (stays[i]) p->list[n++] = p->list[i];
        else pair_free(&p->list[i]);
    p->count = n;
    free(order), free(stays);
}

// ---- one trainer for pairs: reward model, outcome model, DPO
//
// The three losses of chapter 9 that read two answers need one number v per answer, and differ in what it is:
//
//     reward model    v = r(x,y), the scalar head at the last token, <|assistant_end|>
//                     L = -log sigma(r_w - r_l)                              any constant may be added to r
//     outcome model   v = r(x,y) too, but it means P(right) = sigma(r):
//                     L = -1/2 log sigma(r_w) - 1/2 log(1 - sigma(r_l))      r = 0 is now "one in two"
//     DPO             v = log pi(y|x), the sum of log-probabilities of the sampled tokens
//                     L = -log sigma( beta (v_w - ref_w) - beta (v_l - ref_l) )
//
// So a pair is two conversations through the model, v is the sum over the scored tokens of what the head says
// there, and each of these tokens gets d(loss)/dv of its side. The margin is what Bradley-Terry looks at:
// beta ((v_w - ref_w) - (v_l - ref_l)), with beta = 1 and ref = 0 for a reward model. A pair is ranked right
// when its margin is positive.
//
// A reward model begins with the trunk of the supervised model and a head of zeros: at the start it says 0 to
// all, the loss is log 2 = 0.6931, and only the head has a gradient. DPO begins at its own reference: margin
// 0, loss log 2. The reference's log-probabilities do not change, so they are computed once.
//
// Traps. (1) The score belongs at the END of the answer: an earlier token has not seen the rest. (2) Mask.
// The tool's output is no choice of the policy; its log-probabilities, summed into v, would train it to guess
// the calculator's answer. (3) DPO's v is a sum, not a mean: beta has to fit the length. (4) Watch the two
// log-probabilities, not only the margin. When the chosen answers lose probability too, the margin still
// grows, and what gains is something that is in no pair. `./rl dpo --lr 3e-4`, ten times the default, shows
// it: 98% of the pairs ranked right, a margin of 9, the chosen answers down from -1 to -44 nats, and a policy
// that is right 3 times in 100. (5) P(right) is that of answers as in the pairs, where half are right. For a
// policy that is right one time in ten it is far too high.

typedef struct {
    const char *name, *what;
    int scalar;                      // 1 = by the scalar head, 0 = by log-probabilities
    // value, reference (2) -> loss, and slope (2) = d(loss)/d(value)
    double (*loss)(float* slope, const float* value, const float* reference, float beta);
} PairLoss;

static double pair_bradley_terry(float* slope, const float* value, const float* reference, float beta) {
    (void)reference, (void)beta;
    return loss_reward_model(&slope[CHOSEN], &slope[REJECTED], value[CHOSEN], value[REJECTED]);
}

// Binary cross-entropy on the label of each answer, right (1) or wrong (0); mean of the two (Cobbe et al.
// 2021).
static double pair_outcome(float* slope, const float* value, const float* reference, float beta) {
    double right, wrong, loss = bradley_terry(&right, value[CHOSEN]);
    loss += bradley_terry(&wrong, -value[REJECTED]);
    (void)reference, (void)beta;
    slope[CHOSEN] = (float)(0.5 * right), slope[REJECTED] = (float)(-0.5 * wrong);
    return 0.5 * loss;
}

static double pair_dpo(float* slope, const float* value, const float* reference, float beta) {
    return loss_dpo(&slope[CHOSEN], &slope[REJECTED], value[CHOSEN], value[REJECTED], reference[CHOSEN],
                    reference[REJECTED], beta);
}

static const PairLoss pair_losses[] = {
    {"bradley-terry", "the chosen answer beats the rejected one", 1, pair_bradley_terry},
    {"outcome", "the chosen answer is right, the other one wrong", 1, pair_outcome},
    {"dpo", "as bradley-terry, on the policy's own log-ratios", 0, pair_dpo},
};

// What a pair said on its way through the model.
typedef struct { float value[2]; double loss, margin; } PairResult;

typedef struct {
    Pair* const* list;               // (count)
    int *from, count, with_grads;    // task i takes the pairs from[i] .. from[i+1]-1
    const PairLoss* loss;
    float beta;
    PairResult* result;              // (count) out
} PairsTask;

static void pairs_some(Model* m, int index, void* context) {
    const PairsTask* c = context;
    int first = c->from[index], count = c->from[index + 1] - first, k = 0, scalar = m->config.scalar;
    Batch b = {0};
    for (int i = 0; i < 2 * count; i++) {
        const Tokens* t = &c->list[first + i / 2]->tokens[i % 2];
        if (scalar) batch_add_judged(&b, t->ids, t->length, -1);
        else batch_add_conversation(&b, t);
    }
    (scalar ? model_scalar_forward : model_forward)(m, &b);
    const float* said = scalar ? m->acts.scalar : m->acts.logp;
    float* d = allocate((size_t)b.M, sizeof(float));
    for (int i = 0; i < count; i++) {
        const Pair* pair = c->list[first + i];
        PairResult* r = &c->result[first + i];
        float slope[2];
        int begin = k, middle = k;
        for (int side = CHOSEN; side <= REJECTED; side++) {
            double sum = 0.0;
            for (; k < b.M && b.scored[k] < b.start[2 * i + side + 1]; k++) sum += said[k];
            r->value[side] = (float)sum;
            if (side == CHOSEN) middle = k;
        }
        r->loss = c->loss->loss(slope, r->value, pair->reference, c->beta);
        r->margin = (double)c->beta * (((double)r->value[CHOSEN] - pair->reference[CHOSEN]) -
                                       ((double)r->value[REJECTED] - pair->reference[REJECTED]));
        for (int j = begin; j < k; j++) d[j] = slope[j < middle ? CHOSEN : REJECTED] / (float)c->count;
    }
    if (c->with_grads) (scalar ? model_scalar_backward : model_backward)(m, &b, d);
    batch_free(&b);
    free(d);
}

// `count` pairs through the model: result (count), and with with_grads the gradient of the mean loss, added
// to grads. beta = 1 for a scalar model.
static void pairs_forward(PairResult* result, Model* m, Pair* const* list, int count, const PairLoss* loss,
                          float beta, int with_grads) {
    int* tokens = allocate((size_t)count, sizeof(int));
    PairsTask c = {list, allocate((size_t)count + 1, sizeof(int)), count, with_grads, loss, beta, result};
    for (int i = 0; i < count; i++)
        tokens[i] = list[i]->tokens[CHOSEN].length + list[i]->tokens[REJECTED].length;
    int tasks = cut_into_tasks(c.from, tokens, count);
    run_tasks(m, tasks, with_grads, pairs_some, &c);
    free(c.from), free(tokens);
}

// The results of all pairs, without a gradient; to be freed.
static PairResult* all_pairs_forward(Model* m, Pairs* p, const PairLoss* loss, float beta) {
    Pair** list = allocate((size_t)p->count, sizeof(Pair*));
    PairResult* result = allocate((size_t)p->count, sizeof(PairResult));
    for (int i = 0; i < p->count; i++) list[i] = &p->list[i];
    pairs_forward(result, m, list, p->count, loss, beta, 0);
    free(list);
    return result;
}

// The log-probabilities of all pairs under the reference, once and for all.
static void set_reference(Pairs* p, Model* reference, const PairLoss* loss) {
    PairResult* result = all_pairs_forward(reference, p, loss, 1.0f);
    for (int i = 0; i < p->count; i++)
        memcpy(p->list[i].reference, result[i].value, sizeof p->list[i].reference);
    free(result);
}

// Means over the pairs of an update.
typedef struct { double loss, margin, accuracy, chosen, rejected, grad_norm, seconds; } PairMetrics;

// 1 = ranked right, 0 = wrong; equal values are half right, as a coin would be.
static double ranked_right(double margin) { return margin > 0.0 ? 1.0 : margin < 0.0 ? 0.0 : 0.5; }

// One update on `count` pairs. AdamW and the clipping of the gradient as everywhere.
static PairMetrics pairs_step(Model* m, Optimizer* optimizer, Pair* const* list, int count,
                              const PairLoss* loss, float beta, float lr, float grad_clip, AdamOptions adam) {
    PairMetrics s = {0};
    PairResult* result = allocate((size_t)count, sizeof(PairResult));
    double begin = seconds_now();
    model_zero_grads(m);
    pairs_forward(result, m, list, count, loss, beta, 1);
    for (int i = 0; i < count; i++) {
        s.loss += result[i].loss / count, s.margin += result[i].margin / count;
        s.accuracy += ranked_right(result[i].margin) / count;
        s.chosen += result[i].value[CHOSEN] / (double)count;
        s.rejected += result[i].value[REJECTED] / (double)count;
    }
    s.grad_norm = clip_gradient(m, grad_clip);
    adamw_step(m, optimizer, lr, adam);
    s.seconds = seconds_now() - begin;
    free(result);
    return s;
}

// ---- is a judge any good? Accuracy and calibration on pairs that it was not trained on
//
// Accuracy: the share of pairs ranked right. Pairs of one question are not independent, questions are
// (chapter 11's trap 2), so the interval counts questions: with a_i of the m_i pairs of question i ranked
// right, p = sum a_i / sum m_i has the variance of a ratio,
//
//     var(p) = n / (n - 1) * sum_i (a_i - p m_i)^2 / (sum_i m_i)^2             n questions (Cochran 1977)
//
// Calibration: of all pairs that a reward model calls at 80%, are 80% ranked right? Each pair is read from
// the side of the predicted winner, sigma(|margin|) >= 1/2 against whether it really won; from the loser's
// side it is the same statement. An outcome model makes two statements per pair, sigma(r) of each answer. The
// expected calibration error is the distance of the two, weighted by how often a bin occurs (Naeini 2015):
//
//     ECE = sum over bins of (n_b / n) |mean prediction - observed share|

enum { CALIBRATION_BINS = 5 };
typedef struct {
    int pairs, questions;
    double accuracy, low, high;                      // with its 95% interval
    double from;                                     // bins divide from .. 1: 1/2, or 0 for an outcome model
    int count[CALIBRATION_BINS];
    double predicted[CALIBRATION_BINS], observed[CALIBRATION_BINS], error;   // means per bin, and the ECE
} PairEvaluation;

static void calibration_add(PairEvaluation* e, double p, double y) {
    int b = min_int(CALIBRATION_BINS - 1, (int)((p - e->from) / (1.0 - e->from) * CALIBRATION_BINS));
    e->count[b]++, e->predicted[b] += p, e->observed[b] += y;
}

static void calibration_finish(PairEvaluation* e) {
    int n = 0;
    for (int b = 0; b < CALIBRATION_BINS; b++) n += e->count[b];
    for (int b = 0; b < CALIBRATION_BINS; b++) {
        if (!e->count[b]) continue;
        e->predicted[b] /= e->count[b], e->observed[b] /= e->count[b];
        e->error += (double)e->count[b] / n * fabs(e->predicted[b] - e->observed[b]);
    }
}

typedef struct { const char* question; double right; } RankedPair;

static int compare_ranked(const void* a, const void* b) {
    const RankedPair *x = a, *y = b;
    int order = strcmp(x->question, y->question);
    return order ? order : (x->right > y->right) - (x->right < y->right);
}

// accuracy, low, high and questions of e. ranked (n) is put in order.
static void accuracy_finish(PairEvaluation* e, RankedPair* ranked, int n) {
    double sum = 0.0, square = 0.0;
    for (int i = 0; i < n; i++) sum += ranked[i].right;
    e->pairs = n, e->accuracy = sum / n;
    qsort(ranked, (size_t)n, sizeof(RankedPair), compare_ranked);
    for (int i = 0, j = 0; i < n; i = j) {
        double off = 0.0;
        for (; j < n && !strcmp(ranked[j].question, ranked[i].question); j++)
            off += ranked[j].right - e->accuracy;
        square += off * off;
        e->questions++;
    }
    double q = e->questions, variance = q > 1 ? q / (q - 1) * square / ((double)n * n) : 0.0;
    rate_interval(&e->low, &e->high, e->accuracy, variance * q, e->questions);
}

static PairEvaluation evaluate_pairs(Model* m, Pairs* p, const PairLoss* loss, float beta) {
    int n = p->count, by_answer = loss->loss == pair_outcome;
    PairEvaluation e = {.from = by_answer ? 0.0 : 0.5};
    PairResult* result = all_pairs_forward(m, p, loss, beta);
    RankedPair* ranked = allocate((size_t)n, sizeof(RankedPair));
    for (int i = 0; i < n; i++) {
        double right = ranked_right(result[i].margin);
        ranked[i] = (RankedPair){p->list[i].question, right};
        if (!by_answer) calibration_add(&e, sigmoid(fabs(result[i].margin)), right);
        for (int side = CHOSEN; by_answer && side <= REJECTED; side++)
            calibration_add(&e, sigmoid(result[i].value[side]), side == CHOSEN);
    }
    accuracy_finish(&e, ranked, n);
    calibration_finish(&e);
    free(result), free(ranked);
    return e;
}

// ---- best of n
//
// Rejection sampling (chapter 9): sample N answers, keep the best, and imitate them. Supervised training on a
// data set that the model wrote and a judge filtered. DeepSeek R1's third stage is this, on 600k answers.
//
//     prompt     the best answer of each question; a question on which all fail gives none     M answers
//     overall    the M best of all answers, whatever question they belong to
//     random     M answers at random: the control
//
// What "overall" buys with a higher score it pays for with questions: easy ones give many answers, hard ones
// none. Equal scores are settled by the seed. In the order of the file, a 0/1 reward would fill the M places
// from the first questions alone.
//
// Trap: without the control you do not know what the selection did. Training a model on its own unselected
// answers changes little, but not nothing (it goes on with another learning rate and on other questions), and
// only what goes beyond that is due to the reward.

enum { KEEP_PROMPT, KEEP_OVERALL, KEEP_RANDOM, KEEP_RULES };
static const char* const keep_names[KEEP_RULES] = {"prompt", "overall", "random"};

typedef struct { float score; int place, index; } RankedAnswer;

// By score, the highest first; equal ones by place, which is random.
static int compare_answers(const void* a, const void* b) {
    const RankedAnswer *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score) - (x->score > y->score) : x->place - y->place;
}

// Which answers are kept: kept (count), their indices in rising order; returns how many, M.
//   score (count,K)   NaN = not to be kept at all
//   above             the best of a question must have a score above this: 0 for a verifier, -inf for a judge
// All three rules keep the same number M, the one of KEEP_PROMPT.
static int keep_answers(int* kept, const float* score, int count, int K, int rule, float above,
                        uint64_t seed) {
    int n = count * K, usable = 0, M = 0, *order = allocate((size_t)n, sizeof(int));
    RankedAnswer* ranked = allocate((size_t)n, sizeof(RankedAnswer));
    Rng rng = random_stream(seed, 0, 0);
    for (int i = 0; i < count; i++) {
        int best = best_of_n(score + (size_t)i * K, K);
        if (best >= 0 && score[i * K + best] > above) kept[M++] = i * K + best;
    }
    if (rule != KEEP_PROMPT) {
        shuffle(order, n, &rng);
        for (int i = 0; i < n; i++)
            if (!isnan(score[i]))
                ranked[usable++] = (RankedAnswer){rule == KEEP_RANDOM ? 0.0f : score[i], order[i], i};
        qsort(ranked, (size_t)usable, sizeof *ranked, compare_answers);
        memset(order, 0, (size_t)n * sizeof(int));           // from here on: 1 = kept
        for (int i = 0; i < M; i++) order[ranked[i].index] = 1;
        for (int i = 0, k = 0; i < n; i++) if (order[i]) kept[k++] = i;
    }
    free(order), free(ranked);
    return M;
}

// ---- recipes

typedef struct { const char *recipe, *stage, *method, *size, *feedback; } Stage;

static const Stage recipe_stages[] = {
    {"InstructGPT (2022)", "1", "instruction tuning (SFT)", "about 10k examples", "written by people"},
    {"", "2", "reward model", "about 100k pairs (paper: 33k prompts)", "people rank answers"},
    {"", "3", "RLHF (PPO)", "about 100k prompts (paper: 31k)", "the reward model"},
    {"Tulu 3 (2024)", "1", "instruction tuning (SFT)", "about 1M examples", "mostly synthetic"},
    {"", "2", "preference tuning (DPO)", "about 1M pairs (paper, 8B: 271k)", "chosen / rejected"},
    {"", "3", "RLVR", "about 10k prompts (paper: 30k)", "verifier, 0 or 1"},
    {"DeepSeek R1 (2025)", "1", "cold start (SFT)", "100k+ samples (paper: thousands)",
     "from R1-Zero, filtered"},
    {"", "2", "large-scale RLVR", "until convergence", "verifier, 0 or 1"},
    {"", "3", "rejection sampling + SFT", "about 800k, 3/4 reasoning", "verifier and filters"},
    {"", "4", "mixed RL", "reasoning and general prompts", "verifier + reward model"},
};

// The same recipes on the tiny model, each stage one command (./rl recipe NAME runs them); @ is the directory
// of the recipe. `model` is the stage's checkpoint, NULL where it is no policy. A base model is one that has
// not seen a single demonstration of the rewarded format: what pre-training is to R1.
typedef struct { const char *recipe, *stage, *model, *line; } Miniature;

static const Miniature miniatures[] = {
    {"instructgpt", "instruction tuning (SFT)", "sft", "./train_gpt --out @/sft"},
    {"instructgpt", "reward model", NULL, "./rl reward-model --model-tag @/sft --out @/reward"},
    {"instructgpt", "RLHF (PPO)", "ppo",
     "./rl train --algo ppo --reward model:@/reward --model-tag @/sft --out @/ppo"},
    {"tulu3", "instruction tuning (SFT)", "sft", "./train_gpt --out @/sft"},
    {"tulu3", "preference tuning (DPO)", "dpo", "./rl dpo --model-tag @/sft --out @/dpo"},
    {"tulu3", "RLVR", "rlvr", "./rl train --algo ppo --model-tag @/dpo --out @/rlvr"},
    {"r1", "(demonstrations without ####)", NULL, "grep -v '####' data/demos.jsonl > @/base.jsonl"},
    {"r1", "base model", "base", "./train_gpt --data @/base.jsonl --steps 800 --out @/base"},
    {"r1", "(64 demonstrations with ####)", NULL, "grep -m 64 '####' data/demos.jsonl > @/cold.jsonl"},
    {"r1", "1 cold start (SFT)", "cold",
     "./train_gpt --data @/cold.jsonl --model @/base --steps 60 --lr 0.001 --out @/cold"},
    {"r1", "2 RLVR (GRPO)", "rlvr", "./rl train --algo grpo --model-tag @/cold --out @/rlvr"},
    {"r1", "3 rejection sampling + SFT", "sft",
     "./rl best-of-n --model-tag @/rlvr --from @/base --num-samples 4 --out @/sft"},
    {"r1", "reward model", NULL, "./rl reward-model --model-tag @/cold --out @/reward"},
    {"r1", "4 mixed RL", "mixed",
     "./rl train --reward gsm8k+model:@/reward --beta 0.3 --kl-in reward --kl-estimator k1 --model-tag @/sft "
     "--out @/mixed"},
    {"r1-zero", "(demonstrations without ####)", NULL, "grep -v '####' data/demos.jsonl > @/never.jsonl"},
    {"r1-zero", "base that never saw ####", "never",
     "./train_gpt --data @/never.jsonl --steps 800 --out @/never"},
    {"r1-zero", "RL on it", "never-rl", "./rl train --algo grpo --model-tag @/never --out @/never-rl"},
    {"r1-zero", "(and 12 with ####)", NULL,
     "(cat @/never.jsonl; grep -m 12 '####' data/demos.jsonl) > @/rarely.jsonl"},
    {"r1-zero", "base that saw 12 of them", "rarely",
     "./train_gpt --data @/rarely.jsonl --steps 800 --out @/rarely"},
    {"r1-zero", "RL on it", "rarely-rl", "./rl train --algo grpo --model-tag @/rarely --out @/rarely-rl"},
};
enum { MINIATURES = sizeof miniatures / sizeof *miniatures };

static void lesson_12(void) {
    printf("LESSON 12. Recipes (D3 section 8)\n\n");
    for (size_t i = 0; i < sizeof recipe_stages / sizeof *recipe_stages; i++) {
        const Stage* s = &recipe_stages[i];
        if (*s->recipe) printf("%s%s\n", i ? "\n" : "", s->recipe);
        printf("  %s  %-26s %-38s\n     %-26s %s\n", s->stage, s->method, s->size, "", s->feedback);
    }
    printf("\nThe miniature (make run)\n");
    TrainOptions t = train_defaults();
    RlOptions o = rl_defaults();
    printf("  1  %-26s %d examples (%d updates of %d)\n     %-26s a mixed crowd\n",
           "instruction tuning (SFT)", t.steps * t.batch_size, t.steps, t.batch_size, "");
    printf("  2  %-26s %d rollouts per update (%d x %d)\n     %-26s verifier, 0 or 1\n", "RLVR",
           o.examples_per_step * o.num_samples, o.examples_per_step, o.num_samples, "");
    printf("\nThe recipes in miniature, each stage one command: ./rl recipe NAME\n");
    for (int i = 0; i < MINIATURES; i++) {
        const Miniature* m = &miniatures[i];
        if (!i || strcmp(m->recipe, m[-1].recipe)) printf("\n  %s\n", m->recipe);
        printf("    %s\n", m->stage);
    }
    printf("\nFrom 2022 to 2025 the supervised stages grow a hundredfold, and the weight moves\nto "
           "reinforcement learning against a verifier.\n");
}

/* ==========================================================================================================
 * APPENDIX. When are two answers the same?                                          (chapters 5 and 6, D2)
 *
 * The inside of answers_equal, whose two ideas chapter 5 explains: normalize, then evaluate. And calculate,
 * the tool of chapter 6, which is the same evaluator with almost everything switched off.
 *
 * It is an ALLOW-LIST. The tables of A.1 hold every spelling, name and unit that is understood. Whatever else
 * an answer says is text: it equals the same text, and it is never evaluated. So a command that nobody
 * thought of (\binom before it had a line here, an arrow, an integral) can only cost a right answer that is
 * spelled in another way; it can't pay for a wrong one. docs/answers.md shows the tables as a list.
 * ======================================================================================================== */
#include <complex.h>
#undef I  // complex.h claims this name; _Complex_I does the same

/* ---- A.1 First idea: normalize ----
 *
 * We read \dfrac{1}{2}, \frac12 and \frac 1 2 as one thing. The first table drops what is only typography and
 * gives each symbol one spelling; everything else is copied. Special forms in the result:
 *     "cm"             words from \text{...} and its relatives, in quotes; also "degree", "%" and "$"
 *     1`000            a thousands separator (the comma of a list stays a comma)
 *     [[a,b],[c,d]]    a matrix, so that rows and columns need no code of their own
 *     {a,b}            a set; LaTeX's grouping braces look the same, but have no comma at their top level
 * A space survives only between letters or digits: 3 1/2 must not become 31/2, nor \sin hx become \sinh x.
 */
static const struct { const char *from, *to; } SPELLINGS[] = {
    {"\\left", ""}, {"\\right", ""}, {"\\big", ""}, {"\\Big", ""}, {"\\bigl", ""}, {"\\bigr", ""},
    {"\\Bigl", ""}, {"\\Bigr", ""}, {"\\displaystyle", ""}, {"\\limits", ""}, {"\\!", ""}, {"\\,", ""},
    {"\\;", ""}, {"\\:", ""}, {"\\ ", " "}, {"~", " "}, {"\\quad", " "}, {"\\qquad", " "}, {"\\(", ""},
    {"\\)", ""}, {"\\[", ""}, {"\\]", ""}, {"{,}", ""}, {",\\!", ""}, {",\\! ", ""}, {"\\dfrac", "\\frac"},
    {"\\tfrac", "\\frac"}, {"\\cfrac", "\\frac"}, {"\\dbinom", "\\binom"}, {"\\tbinom", "\\binom"},
    {"\\cdot", "*"}, {"\\times", "*"}, {"\\div", "/"}, {"**", "^"}, {"\\{", "{"}, {"\\}", "}"},
    {"\\lbrace", "{"}, {"\\rbrace", "}"}, {"\\langle", "("}, {"\\rangle", ")"}, {"\\lvert", "|"},
    {"\\rvert", "|"}, {"\\vert", "|"}, {"\\lfloor", "floor("}, {"\\rfloor", ")"}, {"\\lceil", "ceil("},
    {"\\rceil", ")"}, {"\\emptyset", "{}"}, {"\\varnothing", "{}"}, {"\\leq", "<="}, {"\\le", "<="},
    {"\\leqslant", "<="}, {"\\geq", ">="}, {"\\ge", ">="}, {"\\geqslant", ">="}, {"\\lt", "<"},
    {"\\gt", ">"}, {"\\ne", "!="}, {"\\neq", "!="}, {"\\in", "\xe2\x88\x88"}, {"\\backslash", "\\setminus"},
    {"\\ldots", "..."}, {"\\dots", "..."}, {"\\%", "\"%\""}, {"%", "\"%\""}, {"\\$", "\"$\""},
    {"^\\circ", "\"degree\""}, {"^{\\circ}", "\"degree\""}, {"\\degree", "\"degree\""},
    {"\\mathbb{R}", "(-\\infty,\\infty)"}, {"\\mathbb R", "(-\\infty,\\infty)"},
    {"\\mathbb{R}-", "(-\\infty,\\infty)\\setminus "}, {"\\mathbb{R} - ", "(-\\infty,\\infty)\\setminus "},
    {"\\begin{matrix}", "[["},
    {"\\begin{pmatrix}", "[["}, {"\\begin{bmatrix}", "[["}, {"\\begin{array}", "[["}, {"\\end{matrix}", "]]"},
    {"\\end{pmatrix}", "]]"}, {"\\end{bmatrix}", "]]"}, {"\\end{array}", "]]"}, {"\\beginpmatrix", "[["},
    {"\\endpmatrix", "]]"}, {"\\\\", "],["}, {"&", ","}, {"\\pm*", "\\pm "}, {" and ", ","}, {" or ", ","},
    {", and ", ","}, {", or ", ","},
    // Unicode, in bytes of UTF-8: minus, en dash, times, dots, division, pi, theta, infinity, degree, root,
    // <= >= !=
    {"\xe2\x88\x92", "-"}, {"\xe2\x80\x93", "-"}, {"\xc3\x97", "*"}, {"\xc2\xb7", "*"}, {"\xe2\x8b\x85", "*"},
    {"\xc3\xb7", "/"}, {"\xcf\x80", "\\pi "}, {"\xce\xb8", "\\theta "}, {"\xe2\x88\x9e", "\\infty "},
    {"\xc2\xb0", "\"degree\""}, {"\xe2\x88\x9a", "sqrt "}, {"\xe2\x89\xa4", "<="}, {"\xe2\x89\xa5", ">="},
    {"\xe2\x89\xa0", "!="},
    // union, intersection, set difference, plus-minus, empty set, R, the fractions 1/2 1/4 3/4, three widths
    // of space, euro, pound
    {"\xe2\x88\xaa", "\\cup "}, {"\xe2\x88\xa9", "\\cap "}, {"\xe2\x88\x96", "\\setminus "},
    {"\xc2\xb1", "\\pm "}, {"\xe2\x88\x85", "{}"}, {"\xe2\x84\x9d", "(-\\infty,\\infty)"},
    {"\xc2\xbd", "\\frac12"}, {"\xc2\xbc", "\\frac14"}, {"\xc2\xbe", "\\frac34"}, {"\xc2\xa0", " "},
    {"\xe2\x80\x89", " "}, {"\xe2\x80\xaf", " "}, {"\xe2\x82\xac", "\"euro\""}, {"\xc2\xa3", "\"pound\""},
    // raised digits 0 to 9, and the raised minus
    {"\xe2\x81\xb0", "^0"}, {"\xc2\xb9", "^1"}, {"\xc2\xb2", "^2"}, {"\xc2\xb3", "^3"},
    {"\xe2\x81\xb4", "^4"}, {"\xe2\x81\xb5", "^5"}, {"\xe2\x81\xb6", "^6"}, {"\xe2\x81\xb7", "^7"},
    {"\xe2\x81\xb8", "^8"}, {"\xe2\x81\xb9", "^9"}, {"\xe2\x81\xbb", "^-"},
};
static const char* const TEXT_COMMANDS[] = {
    "\\operatorname", "\\mbox", "\\text", "\\textbf", "\\textit", "\\textrm", "\\mathrm", "\\mathsf",
    "\\hbox", "\\mathbf", "\\boldsymbol", "\\bm"};

// The names, with a backslash or without: one row for each kind, in this order.
enum { F_SIN, F_COS, F_TAN, F_COT, F_SEC, F_CSC, F_ASIN, F_ACOS, F_ATAN, F_LN, F_LOG, F_EXP, F_ABS, F_FLOOR,
       F_CEIL, F_GCD, F_LCM, F_MAX, F_MIN, LAST_FUNCTION = F_MIN, N_SQRT, N_FRAC, N_BINOM, N_PI, N_INFINITY,
       N_DOZEN, N_TRILLION = N_DOZEN + 5, N_OPERATOR, N_VARIABLE, N_TEXT, N_E, N_I };
static const char* const NAMES[] = {
    "sin", "cos", "tan", "cot", "sec", "csc", "arcsin asin", "arccos acos", "arctan atan", "ln", "log lg",
    "exp", "abs", "floor", "ceil", "gcd", "lcm", "max", "min", "sqrt", "frac", "binom", "pi",
    "infty infinity inf oo",
    "dozen", "hundred", "thousand", "million", "billion", "trillion", "cup cap setminus pm mp overline",
    // those of two letters need the backslash: mu is m times u
    ("alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma "
    "tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Upsilon Phi Psi Omega ell")};
static const int64_t MULTIPLIERS[] = {12, 100, 1000, 1000000, 1000000000, 1000000000000};

// The units: the words for each, without the s of the plural. A single letter is a unit only within
// \text{...}, and "unit" is no particular one. Each word of the last row is a unit of its own: 7 apples are
// not 7 pears.
static const char* const UNITS[] = {
    "unit", "cm centimeter centimetre", "mm millimeter millimetre", "km kilometer kilometre", "m meter metre",
    "in inch", "ft foot feet", "yd yard", "mi mile", "hour hr h", "min minute", "s sec second", "year yr",
    "kg kilogram kilo", "g gram", "mg milligram", "oz ounce", "L l liter litre",
    "ml mL milliliter millilitre",
    "gallon gal", "quart qt", "pint pt", "degree deg", "rad radian", "C celsius", "F fahrenheit",
    "$ dollar usd buck", "euro eur", "% percent", "th st nd rd", "person people", "child children kid",
    "man men", "woman women", "fish", "leaf leaves", "mouse mice", "goose geese", "vertex vertices",
    ("cent lb pound ton acre day week month time way point item piece student teacher friend boy girl "
    "guest customer player member adult worker employee passenger page book word letter card game ticket "
    "stamp sticker photo picture toy doll car truck bus bike bicycle train wheel seat apple orange banana "
    "pear peach grape lemon mango tomato potato carrot egg cookie cake cupcake brownie donut muffin candy "
    "lollipop chocolate sandwich pizza slice meal loaf serving cup glass bottle can jar bag box pack "
    "package packet bucket basket barrel crate carton tablespoon teaspoon scoop spoon plate pen pencil "
    "crayon marker eraser notebook folder paper sheet envelope shirt dress skirt shoe sock hat cap coat "
    "button bead ring necklace bracelet balloon marble ball block brick tile shell rock stone stick "
    "flower rose tulip tree branch seed plant bush animal dog cat kitten bird chicken hen duck cow horse "
    "sheep goat pig rabbit rat frog turtle snake bee ant spider coin nickel dime bill token chair table "
    "desk room window door floor house home building step stair lap trip round goal vote class school "
    "team group set row column line segment square circle triangle side edge face angle diagonal digit "
    "number integer solution answer question problem term factor divisor multiple value root zero prime "
    "pair pie subset permutation combination arrangement path route calorie shift night birthday bit byte")};
enum { NAME_ROWS = sizeof NAMES / sizeof *NAMES, UNIT_ROWS = sizeof UNITS / sizeof *UNITS };

// Does the list, words with a space between them, contain the n letters at word?
static int list_has(const char* list, const char* word, int n) {
    for (const char* p = list; n > 0 && p; p = strchr(p, ' ')) {
        p += *p == ' ';
        if (*p == *word && !strncmp(p, word, (size_t)n) && (p[n] == ' ' || !p[n])) return 1;
    }
    return 0;
}

static int look_up(const char* word, int n) {
    int kind = 0;
    while (kind < NAME_ROWS && !list_has(NAMES[kind], word, n)) kind++;
    return kind;  // behind the last row is N_TEXT
}

// What is the run of letters at p, with its backslash if it has one? Its kind, and how many bytes the name
// takes. A run is a known name as a whole or not at all (\sinh is not \sin), but people lose the space behind
// a function (\cotx). Two small letters are a product, so the name is the first of them, but the differential
// dx and the segment AB are one name. Longer runs are text.
static int find_name(int* length, const char* p, const char* end) {
    int slash = p < end && *p == '\\', n = 0;
    const char* word = p + slash;
    while (word + n < end && is_letter(word[n])) n++;
    *length = slash + n;
    int kind = n > 1 ? look_up(word, n) : N_TEXT, lost_space = n > 2 && strchr("xyt", word[n - 1]);
    if (slash && list_has("inf oo", word, n)) return N_TEXT;  // \inf is the infimum
    if (kind < N_VARIABLE || (kind == N_VARIABLE && (slash || n > 2))) return kind;
    if (lost_space && look_up(word, n - 1) <= LAST_FUNCTION) return look_up(word, --*length - slash);
    if (slash || n == 0 || n > 2) return N_TEXT;
    if (n == 2 && word[0] < 'a' && word[1] < 'a') return N_VARIABLE;
    if (n == 2 && word[0] == 'd' && strchr("xyztuv", word[1])) return N_VARIABLE;
    *length = 1;
    if (word + 1 < end && word[1] == '_') return N_VARIABLE;  // e_1 and i_2 are no constants
    return *word == 'e' ? N_E : *word == 'i' ? N_I : N_VARIABLE;
}

typedef struct {
    char text[MAX_NORMALIZED];
    int length, full;  // bytes in text; did it overflow?
    int space, depth;  // is a space waiting; how many brackets are open
    int raised;        // where the last raised digit ended
} Normalized;

static int bracket_step(char c) {
    return (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
}

static int is_word_character(char c) { return is_letter(c) || is_digit(c); }

static void emit(Normalized* out, const char* s, int n) {
    for (int i = 0; i < n; i++) {
        if (is_space(s[i])) {
            out->space = 1;
            continue;
        }
        if (out->length + 2 >= MAX_NORMALIZED) {
            out->full = 1;
            return;
        }
        char before = out->length ? out->text[out->length - 1] : 0;
        int keep = is_word_character(before) && is_word_character(s[i]);
        keep |= (before == 'e' || before == 'E') && (s[i] == '-' || s[i] == '+');  // 2e - 3 is not 2e-3
        if (keep && out->space) out->text[out->length++] = ' ';
        out->text[out->length++] = s[i];
        out->space = 0;
        out->depth += bracket_step(s[i]);
    }
}

static void emit_text(Normalized* out, const char* s) { emit(out, s, (int)strlen(s)); }

// The words [p, end) of a \text{...}: in quotes, so that they are never read as a product. "and" and "or" are
// the comma of a list. A number word, a function with its bracket and \mathrm{e} belong to the mathematics.
static void emit_words(Normalized* out, const char* command, const char* p, const char* end) {
    while (end > p && is_space(end[-1])) end--;
    while (p < end && (is_space(*p) || (*p == ',' && p + 1 < end))) p++;
    int n = 0, letters = 0;
    while (p + n < end && is_letter(p[n])) n++;
    for (const char* q = p; q < end; q++) letters |= is_letter(*q);
    int kind = n ? look_up(p, n) : N_TEXT, whole = p + n == end;
    int call = kind <= LAST_FUNCTION && *end == '}' && end[1] && strchr("({\\", end[1]);
    int constant = n == 1 && (*p == 'e' || *p == 'i') && !strcmp(command, "\\mathrm");
    if (whole && list_has("and or", p, n)) {
        if (out->length && out->text[out->length - 1] != ',') emit_text(out, ",");
    } else if (!letters || (whole && (call || constant || (kind < N_TEXT && command == TEXT_COMMANDS[0])))) {
        emit(out, p, (int)(end - p));
    } else if (kind >= N_DOZEN && kind <= N_TRILLION) {  // "million dollars"
        emit_text(out, " ");
        emit(out, p, n);
        emit_text(out, " ");
        emit_words(out, command, p + n, end);
    } else {
        emit_text(out, "\"");
        for (; p < end; p++)
            if (*p != '"' && *p != '$') emit(out, p, 1);
        emit_text(out, "\"");
    }
}

// Rewrites a \text{...} at p. Returns how many bytes were read, 0 = this is something else.
static int normalize_text_command(Normalized* out, const char* p) {
    for (size_t i = 0; i < sizeof TEXT_COMMANDS / sizeof *TEXT_COMMANDS; i++) {
        size_t n = strlen(TEXT_COMMANDS[i]);
        if (strncmp(p, TEXT_COMMANDS[i], n)) continue;
        const char* start = p + n;
        while (*start == ' ') start++;
        if (*start != '{' && i == 1 && is_letter(p[n])) return (int)n;  // \mboxinches has lost its braces
        const char* close = *start == '{' ? find_closing_brace(start, start + strlen(start)) : NULL;
        if (!close) continue;
        emit_words(out, TEXT_COMMANDS[i], start + 1, close);
        return (int)(close + 1 - p);
    }
    return 0;
}

// The longest entry of SPELLINGS that stands at p: returns its length, 0 = none. A command must stand there
// as a whole: \in is not the beginning of \infty.
static int match_spelling(const char** to, const char* p) {
    int best = 0;
    for (size_t i = 0; i < sizeof SPELLINGS / sizeof *SPELLINGS; i++) {
        const char* from = SPELLINGS[i].from;
        if (from[0] != p[0] || (from[1] && from[1] != p[1])) continue;
        int n = (int)strlen(from);
        if (n <= best || strncmp(p, from, (size_t)n)) continue;
        if (from[0] == '\\' && is_letter(from[n - 1]) && is_letter(p[n])) continue;
        best = n;
        *to = SPELLINGS[i].to;
    }
    return best;
}

// Rewrites what SPELLINGS knows at p. Returns how many bytes were read.
static int normalize_spelling(Normalized* out, const char* p) {
    const char *to = "", *columns;
    int n = match_spelling(&to, p);
    char* last = out->text + out->length;
    if (!strncmp(p, "\\begin{array}{", 14) && (columns = find_closing_brace(p + 13, p + strlen(p))))
        n = (int)(columns + 1 - p);
    if (!strcmp(to, "]]") && out->length > 3 && !strncmp(last - 3, "],[", 3)) {  // a last \\ begins no row
        out->length -= 3;
        emit_text(out, "]]");
        return n;
    }
    if (!strcmp(to, "\"$\"") && out->length && last[-1] == '-') {  // -$5 is $-5
        out->length--;
        emit_text(out, "\"$\"-");
        return n;
    }
    int raised = to[0] == '^' && to[1];
    emit_text(out, raised && out->raised == out->length ? to + 1 : to);  // 1 and 0, raised, are ^10
    if (raised) out->raised = out->length;
    return n;
}

// Rewrites answer into its one spelling. 1 = done, 0 = too long.
static int normalize(Normalized* out, const char* answer) {
    int dollars = 0;
    out->length = out->full = out->space = out->depth = 0;
    out->raised = -1;
    for (const char* p = answer; *p; p++) dollars += *p == '$' && (p == answer || p[-1] != '\\');
    for (const char* p = answer; *p && !out->full;) {
        int n = 0;
        char before = out->length ? out->text[out->length - 1] : 0;
        if (*p == '\\') n = normalize_text_command(out, p);
        if (!n && *p == '$') n = dollars % 2 ? normalize_spelling(out, "\\$") - 1 : 1;  // a pair is LaTeX's
        if (!n && !is_word_character(*p)) n = normalize_spelling(out, p);
        char after = p[1] == ' ' ? p[2] : p[1];
        if (!n && *p == 'U' && (before == ')' || before == ']') && (after == '(' || after == '[')) {
            emit_text(out, "\\cup ");
            n = 1;
        }
        if (!n && *p == '\\' && is_letter(p[1])) {  // \frac, \sqrt, \pi ... stay, with their whole name
            do n++; while (is_letter(p[n]));
            emit(out, p, n);
        }
        if (!n && *p == '_' && is_word_character(p[1])) {  // 52_8 is 52_{8}, x_n is x_{n}
            n = 2;
            while (is_digit(p[1]) && is_digit(p[n])) n++;
            emit_text(out, "_{");
            emit(out, p + 1, n - 1);
            emit_text(out, "}");
        }
        if (!n) {  // anything else is copied; within brackets, (100,200), a comma never belongs to a number
            n = 1;
            emit(out, *p == ',' && out->depth == 0 && is_thousands_comma(answer, p) ? "`" : p, 1);
        }
        p += n;
    }
    while (out->length && out->text[out->length - 1] == '.') out->length--;  // the full stop of the sentence
    out->text[out->length] = 0;
    return !out->full;
}

/* ---- A.2 Second idea: evaluate ----
 *
 * A recursive-descent parser has one function for each level of precedence, written with the next one:
 *     sum      = product  { (+ | - | \pm | \mp) product }
 *     product  = power    { (* | / | nothing) power }             2x is 2*x
 *     power    = postfix  [ ^ power ]                             2^3^2 is 2^(3^2)
 *     postfix  = primary  { ! | % | degree | million }
 *     primary  = number | variable | ( sum ) | \frac A B | \sqrt[n] A | function argument
 * It builds no tree. It computes while it reads, and a variable is simply its value at the current point. For
 * another point the text is read once more.
 */
typedef struct {
    double complex z;  // the value
    double error;      // bound on the rounding error in z
    int64_t num, den;  // z as an exact fraction in lowest terms, den > 0; den = 0 when it isn't known
} Value;

// A part of a text. sign says which of its two values a part with \pm stands for: +1, -1, or 0 = not decided.
typedef struct { const char *p, *end; int sign; } Span;

enum { MAX_NAMES = 20 };  // variables of a comparison
typedef struct { Span name[MAX_NAMES]; int count, imaginary; } Names;  // in the order of their appearance

enum { UNKNOWN = 1, NO_VALUE = 2 };  // why it failed: outside of the grammar, or no value at this point

typedef struct {
    const char *p, *end;  // what is still to be read
    Names* names;         // the variables so far; NULL = the calculator of chapter 6: numbers, + - * / ( )
    int point, sign;      // which evaluation point; +1 or -1 for \pm
    int nesting, bars;    // levels; is a | open?
    int failed;           // 0, UNKNOWN or NO_VALUE
} Parser;

static const double ROUNDING = 0x1p-53;                     // half a unit in the last place of a double
static const int64_t EXACT_LIMIT = ((int64_t)1 << 62) - 1;  // the sum of two still fits an int64_t

static Span make_span(const char* text) { return (Span){text, text + strlen(text), 0}; }

static Span trim_span(Span s) {
    while (s.p < s.end && *s.p == ' ') s.p++;
    while (s.end > s.p && s.end[-1] == ' ') s.end--;
    return s;
}

static int starts_with(const char* p, const char* end, const char* token) {
    size_t n = strlen(token);
    return (size_t)(end - p) >= n && !memcmp(p, token, n);
}

// The first place outside of brackets and quotes where one of the tokens stands, and which. NULL = nowhere.
static const char* find_outside(int* which, Span s, const char* const* tokens, int count) {
    int depth = 0, quoted = 0;
    for (const char* p = s.p; p < s.end; p++) {
        quoted ^= *p == '"';
        for (int i = 0; i < count && depth == 0 && !quoted; i++) {
            *which = i;
            if (starts_with(p, s.end, tokens[i])) return p;
        }
        if (!quoted) depth += bracket_step(*p);
    }
    return NULL;
}

// The bracket that closes the one at p; NULL = none does.
static const char* find_close(const char* p, const char* end) {
    int depth = 0;
    for (; p < end; p++)
        if ((depth += bracket_step(*p)) == 0) return p;
    return NULL;
}

// Do a and b say the same? Quotes don't count, and a thousands separator is a comma. Among words parentheses
// don't count either, \text{(C)} is C, nor capitals if any_case. (A text with \pm equals its twin of the
// other sign here. That is right: both lists contain both.)
static int same_text(Span a, Span b, int words, int any_case) {
    const char* skipped = words ? "\"()" : "\"";
    for (;; a.p++, b.p++) {
        while (a.p < a.end && strchr(skipped, *a.p)) a.p++;
        while (b.p < b.end && strchr(skipped, *b.p)) b.p++;
        if (a.p == a.end || b.p == b.end) return a.p == a.end && b.p == b.end;
        int x = *a.p == '`' ? ',' : *a.p, y = *b.p == '`' ? ',' : *b.p;
        if (x != y && !(any_case && lower_case(x) == lower_case(y))) return 0;
    }
}

static Value fail_value(Parser* s, int why) {
    if (!s->failed) s->failed = why;
    return (Value){0, 0, 0, 0};
}

static Value make_inexact(double complex z, double error) {
    return (Value){z, error + ROUNDING * cabs(z), 0, 0};
}

static Value make_exact(int64_t num, int64_t den) {  // den is not 0
    int64_t a = num < 0 ? -num : num, b = den < 0 ? -den : den;
    while (b) {  // Euclid: a becomes the greatest common divisor
        int64_t r = a % b;
        a = b;
        b = r;
    }
    if (den < 0) a = -a;
    double value = (double)(num / a) / (double)(den / a);
    return (Value){value, ROUNDING * fabs(value), num / a, den / a};
}

// *out = a * b; 0 = the product leaves the exact range
static int multiply_exact(int64_t* out, int64_t a, int64_t b) {
    if (a && llabs(b) > EXACT_LIMIT / llabs(a)) return 0;
    *out = a * b;
    return 1;
}

// The four operations: exact when both are and the result fits, else in floating point with the error carried
// on.
static Value negate(Value a) { return (Value){-a.z, a.error, -a.num, a.den}; }

static Value add(Value a, Value b) {
    int64_t x, y, den;
    if (a.den && b.den && multiply_exact(&x, a.num, b.den) && multiply_exact(&y, b.num, a.den) &&
        multiply_exact(&den, a.den, b.den) && llabs(x + y) <= EXACT_LIMIT) return make_exact(x + y, den);
    return make_inexact(a.z + b.z, a.error + b.error);
}

static Value multiply(Value a, Value b) {
    int64_t num, den;
    if (a.den && b.den && multiply_exact(&num, a.num, b.num) && multiply_exact(&den, a.den, b.den))
        return make_exact(num, den);
    return make_inexact(a.z * b.z, a.error * cabs(b.z) + b.error * cabs(a.z));
}

static Value divide(Parser* s, Value a, Value b) {
    if (b.z == 0 || (!b.den && cabs(b.z) <= b.error)) return fail_value(s, NO_VALUE);  // zero?
    int64_t num, den;
    if (a.den && b.den && multiply_exact(&num, a.num, b.den) && multiply_exact(&den, a.den, b.num))
        return make_exact(num, den);
    double complex z = a.z / b.z;
    return make_inexact(z, (a.error + b.error * cabs(z)) / cabs(b.z));
}

// a^b. Whole exponents by repeated squaring, which keeps fractions exact. A negative real number to the power
// p/q with odd q has a real root, and school means that one: (-8)^(1/3) = -2.
static Value raise_power(Parser* s, Value a, Value b) {
    if (b.den == 1 && llabs(b.num) <= 1024) {
        if (b.num == 0 && a.z == 0) return fail_value(s, NO_VALUE);
        Value result = make_exact(1, 1);
        for (int64_t n = llabs(b.num); n; n >>= 1) {
            if (n & 1) result = multiply(result, a);
            if (n > 1) a = multiply(a, a);
        }
        return b.num < 0 ? divide(s, make_exact(1, 1), result) : result;
    }
    double size = cabs(a.z);
    if (size == 0) return creal(b.z) > 0 ? make_exact(0, 1) : fail_value(s, NO_VALUE);
    double complex z;
    int real = cimag(a.z) == 0 && cimag(b.z) == 0;
    if (real && creal(a.z) > 0) z = pow(size, creal(b.z));
    else if (real && b.den % 2 == 1) z = pow(size, creal(b.z)) * (b.num % 2 ? -1 : 1);
    else z = cpow(a.z, b.z);
    double relative = cabs(b.z) * a.error / size + (fabs(log(size)) + 4) * (b.error + 4 * ROUNDING);
    return make_inexact(z, cabs(z) * relative);
}

// What comes next, after spaces; 0 = the end, or failed.
static char peek(Parser* s) {
    while (s->p < s->end && *s->p == ' ') s->p++;
    return s->p < s->end && !s->failed ? *s->p : 0;
}

static int accept(Parser* s, const char* token) {
    if (!peek(s) || !starts_with(s->p, s->end, token)) return 0;
    s->p += strlen(token);
    return 1;
}

static const char FUNCTION_LETTERS[] = "f g h F G H \\phi \\varphi \\psi \\zeta \\Phi \\Psi \\Gamma";

static Value parse_sum(Parser* s);
static Value parse_product(Parser* s, int as_argument);
static Value parse_power(Parser* s);
static Value parse_signed_power(Parser* s);
static Value parse_primary(Parser* s);

// The greatest common divisor or the least common multiple of whole numbers, the larger or smaller real one.
// Of variables, gcd(a,b) is something that gcd(b,a) is too, and nothing else: any symmetric function will do.
static Value combine(Parser* s, int function, Value a, Value b) {
    if (function == F_MAX || function == F_MIN) {
        if (cimag(a.z) != 0 || cimag(b.z) != 0) return fail_value(s, NO_VALUE);
        return (creal(a.z) > creal(b.z)) == (function == F_MAX) ? a : b;
    }
    double complex symmetric = csin(a.z + b.z + function) + ccos(a.z * b.z);
    if (!a.den || !b.den) return make_inexact(symmetric, a.error + b.error);
    if (a.den != 1 || b.den != 1 || !a.num || !b.num) return fail_value(s, UNKNOWN);
    int64_t den = make_exact(a.num, b.num).den, product;  // a/b in lowest terms: den = b / gcd
    if (function == F_GCD) return make_exact(llabs(b.num) / den, 1);
    return multiply_exact(&product, llabs(a.num), den) ? make_exact(product, 1) : fail_value(s, UNKNOWN);
}

// ( sum ), and the same with { } and [ ]. Functions of several arguments combine them, \max(1, 2, 3).
static Value parse_group(Parser* s, int function) {
    const char* close = *s->p == '(' ? ")" : *s->p == '[' ? "]" : "}";
    int bars = s->bars;
    s->p++;
    s->bars = 0;
    Value value = parse_sum(s);
    while (function >= F_GCD && accept(s, ",")) value = combine(s, function, value, parse_sum(s));
    s->bars = bars;
    return accept(s, close) ? value : fail_value(s, UNKNOWN);
}

// What \frac, \sqrt or \log_ takes: a group, one digit (\frac12 is one half), or one name with what belongs
// to it.
static Value parse_argument(Parser* s) {
    accept(s, "*");  // \frac*sqrt(3)3 is \frac{\sqrt{3}}{3} without its braces, and nothing else
    return is_digit(peek(s)) ? make_exact(*s->p++ - '0', 1) : parse_primary(s);
}

// A whole number within a fraction: digits, in braces or bare; bare behind \frac it has one digit. 1 = read.
static int read_small_integer(Parser* s, int64_t* value, int latex) {
    int braces = accept(s, "{"), digits = 0;
    peek(s);
    for (*value = 0; s->p < s->end && is_digit(*s->p) && digits < (latex && !braces ? 1 : 9); digits++)
        *value = *value * 10 + *s->p++ - '0';
    return digits && (!braces || accept(s, "}"));
}

// A fraction right behind a whole number makes a mixed number: 3\frac{1}{2} and 3 1/2 are 3.5. Only a proper
// fraction of whole numbers does: 3\frac{x}{2} is a product.
static Value parse_mixed_number(Parser* s, Value whole) {
    Parser ahead = *s;
    int64_t num = 0, den = 0;
    int space = ahead.p < ahead.end && *ahead.p == ' ', latex = accept(&ahead, "\\frac");
    if (!latex && !space) return whole;
    if (!read_small_integer(&ahead, &num, latex) || (!latex && !accept(&ahead, "/"))) return whole;
    if (!read_small_integer(&ahead, &den, latex)) return whole;
    if (num <= 0 || num >= den) return fail_value(s, UNKNOWN);  // 1\frac{3}{2}: a product or a slip?
    s->p = ahead.p;
    return add(whole, make_exact(num, den));
}

// 0.1\overline{6}: digits that repeat behind a last place of 1/unit. r of them add digits / (unit (10^r -
// 1)).
static Value parse_repeating_digits(Parser* s, Value value, int64_t unit) {
    int64_t digits, power = 1, den;
    const char* start = s->p;
    if (!read_small_integer(s, &digits, 1)) return fail_value(s, UNKNOWN);
    for (; start < s->p; start++) power *= is_digit(*start) ? 10 : 1;
    if (!multiply_exact(&den, power - 1, unit)) return fail_value(s, UNKNOWN);
    return add(value, make_exact(digits, den));
}

// 1e-3, 2E5: the power of ten behind a number, without a space. 2E-1 and 2e+1 are sums, 2E-01 and 2e+01 are
// not.
static Value parse_exponent(Parser* s, Value value) {
    const char* p = s->p + 1;
    char sign = p < s->end && (*p == '-' || *p == '+') ? *p++ : 0;
    int n = 0, digits = 0;
    for (; p < s->end && is_digit(*p) && digits < 4; digits++) n = n * 10 + *p++ - '0';
    if (!digits || (digits == 1 && sign && (sign == '+' || *s->p == 'E'))) return value;
    s->p = p;
    return multiply(value, raise_power(s, make_exact(10, 1), make_exact(sign == '-' ? -n : n, 1)));
}

// 12, 1`000, .5, 0.1\overline{6}, 1e-3, 3\frac{1}{2}. A number with more digits than fit is not evaluated:
// 0.3333333333333333333 is not 1/3, and a double couldn't tell. (The calculator rounds its result anyway.)
static Value parse_number(Parser* s) {
    int64_t num = 0, den = 1;
    int exact = 1, digits = 0, dot = 0;
    double value = 0, scale = 1;
    const char* start = s->p;
    for (; s->p < s->end; s->p++) {
        char c = *s->p;
        if (c == '`' || (c == ',' && !s->names && !dot && is_thousands_comma(start, s->p))) continue;
        if (c == '.' && !dot) {
            dot = 1;
            continue;
        }
        if (!is_digit(c)) break;
        exact = exact && multiply_exact(&num, num, 10) && (!dot || multiply_exact(&den, den, 10));
        if (exact) num += c - '0';
        value = value * 10 + (c - '0');
        if (dot) scale *= 10;
        digits++;
    }
    if (!digits || !isfinite(value) || !isfinite(scale)) return fail_value(s, UNKNOWN);
    if (!exact && s->names) return fail_value(s, UNKNOWN);
    double inexact = value / scale;
    Value result = exact ? make_exact(num, den) : make_inexact(inexact, inexact * digits * ROUNDING);
    if (!s->names) return result;
    if (s->p < s->end && (*s->p == 'e' || *s->p == 'E')) return parse_exponent(s, result);
    if (!dot) return parse_mixed_number(s, result);
    return accept(s, "\\overline") ? parse_repeating_digits(s, result, den) : result;
}

// The end of the name at p, NULL = no name. A name is a letter or a Greek letter with what belongs to it:
// primes, a subscript (a_{n-1} is not a_{n+1}), and the bracket of a function. Is f(2) a product? Before a
// sum it is one, x(y+1), unless people use the letter for functions; else nobody writes a product so.
static const char* end_of_name(const char* p, const char* end) {
    static const char* const signs[] = {"+", "-"};
    int length, which, function;
    if (find_name(&length, p, end) != N_VARIABLE) return NULL;
    function = list_has(FUNCTION_LETTERS, p, length);
    p += length;
    while (p < end && *p == '\'') p++;
    if (p < end && *p == '_') {
        const char* brace = p + 1 < end && p[1] == '{' ? find_closing_brace(p + 1, end) : NULL;
        if (!brace) return NULL;
        p = brace + 1;
    }
    const char* close = p < end && *p == '(' ? find_close(p, end) : NULL;
    if (!close) return p;
    if (!function && close >= p + 2 && find_outside(&which, (Span){p + 2, close, 0}, signs, 2)) return p;
    return close + 1;
}

// The value of variable number j of this comparison at one of 32 points. It must not hang on the letter, and
// it must tell x from |x|, and 3-x from |x-3|. So the five bits of the point, turned round by j places, are
// the sign and one of 16 sizes: every variable takes each size with either sign, and any five have all their
// combinations of signs. From the sixth variable on the bits are sums of bits of the point. (A little noise
// makes coincidences unlikely; some values are whole numbers, since ceil(x) is floor(x) + 1 at all others.)
static double variable_value(int j, int point) {
    static const double sizes[] = {1.7, 0.04, 0.2, 0.4, 0.7, 1.1, 2.6, 4, 6, 9, 14, 22, 50, 150, 1000, 20000};
    unsigned bits = (unsigned)point;
    for (int k = 1; k <= j / 5; k++) bits ^= (unsigned)(point >> k | point << (5 - k)) & 31;
    bits = (bits >> j % 5 | bits << (5 - j % 5)) & 31;
    Rng rng = {(uint64_t)(j * EVALUATION_POINTS + point)};
    double size = sizes[bits >> 1] * (0.8 + 0.5 * (double)(random_u64(&rng) >> 11) * 0x1p-53);
    if (point % 8 == 7) size = ceil(size);
    return bits & 1 ? -size : size;
}

static Value parse_variable(Parser* s) {
    const char* end = end_of_name(s->p, s->end);
    if (!end) return fail_value(s, UNKNOWN);
    Span name = {s->p, end, 0};
    int j = 0;
    name.p += *name.p == '\\';  // \theta is theta
    while (j < s->names->count && !same_text(s->names->name[j], name, 0, 0)) j++;
    if (j == MAX_NAMES) return fail_value(s, UNKNOWN);
    if (j == s->names->count) s->names->name[s->names->count++] = name;
    s->p = end;
    return make_inexact(variable_value(j, s->point), 0);
}

static Value apply_function(Parser* s, int function, Value a) {
    double complex z = 0, x = a.z;
    double r = creal(x);
    int real = cimag(x) == 0;
    switch (function) {
    case F_SIN: z = real ? sin(r) : csin(x); break;
    case F_COS: z = real ? cos(r) : ccos(x); break;
    case F_TAN: z = real ? tan(r) : ctan(x); break;
    case F_COT: return divide(s, apply_function(s, F_COS, a), apply_function(s, F_SIN, a));
    case F_SEC: return divide(s, make_exact(1, 1), apply_function(s, F_COS, a));
    case F_CSC: return divide(s, make_exact(1, 1), apply_function(s, F_SIN, a));
    case F_ASIN: z = casin(x); break;
    case F_ACOS: z = cacos(x); break;
    case F_ATAN: z = catan(x); break;
    case F_EXP: z = real ? exp(r) : cexp(x); break;
    case F_LN: case F_LOG:
        if (cabs(x) <= a.error) return fail_value(s, NO_VALUE);
        z = real && r > 0 ? log(r) : clog(x);
        break;
    case F_ABS: return a.den ? (a.num < 0 ? negate(a) : a) : make_inexact(cabs(x), a.error);
    case F_CEIL: return negate(apply_function(s, F_FLOOR, negate(a)));
    case F_FLOOR:  // C rounds a quotient toward zero, floor rounds it down
        if (a.den) return make_exact(a.num / a.den - (a.num % a.den < 0), 1);
        if (!real || !(fabs(r) < 1e15)) return fail_value(s, NO_VALUE);
        return make_exact((int64_t)floor(r), 1);
    }
    // an error e in x becomes about f'(x) e; 1 + |f|^2 and 1/|x| bound the slopes of these functions well
    // enough
    double slope = (1 + cabs(z) * cabs(z)) * fmax(1, cabs(x) > 0 ? 1 / cabs(x) : 1);
    return make_inexact(z, a.error * slope + 4 * ROUNDING * (1 + cabs(z)));
}

// sin(x), \sin 2x, \sin^2 x, \sin^{-1} x, \log_{2} 8. A log without a base has base 10.
static Value parse_function(Parser* s, int function) {
    Value base = make_exact(10, 1), exponent = make_exact(1, 1);
    if (function == F_LOG && accept(s, "_")) base = parse_argument(s);
    if (accept(s, "^")) exponent = parse_argument(s);
    if (exponent.den == 1 && exponent.num == -1 && function <= F_TAN) {  // \sin^{-1} is the arcsine
        function += F_ASIN - F_SIN;
        exponent = make_exact(1, 1);
    }
    char next = peek(s);
    if (function >= F_GCD && next != '(' && next != '{') return fail_value(s, UNKNOWN);
    int group = next == '(' || next == '{' || next == '[';
    Value argument = group ? parse_group(s, function) : parse_product(s, 1);
    if (s->failed || function >= F_GCD) return argument;
    Value value = apply_function(s, function, argument);
    if (function == F_LOG) value = divide(s, value, apply_function(s, F_LN, base));
    return raise_power(s, value, exponent);
}

// \binom{n}{k} for a whole k: n (n-1) ... (n-k+1) / k!
static Value parse_binomial(Parser* s) {
    Value n = parse_argument(s), k = parse_argument(s), result = make_exact(1, 1);
    if (s->failed || k.den != 1 || k.num < 0 || k.num > 100) return fail_value(s, UNKNOWN);
    for (int64_t i = 0; i < k.num; i++)
        result = divide(s, multiply(result, add(n, make_exact(-i, 1))), make_exact(i + 1, 1));
    return result;
}

// \sqrt{2}, \sqrt2, \sqrt[3]{2}, sqrt(2), sqrt 12. (\sqrt12 is the root of 1 and then a 2: see
// starts_factor.)
static Value parse_root(Parser* s, int backslash) {
    Value index = make_exact(2, 1);
    if (peek(s) == '[') index = parse_group(s, 0);
    Value radicand = !backslash && is_digit(peek(s)) ? parse_number(s) : parse_argument(s);
    return raise_power(s, radicand, divide(s, make_exact(1, 1), index));
}

// A function, a constant or a variable.
static Value parse_name(Parser* s) {
    int length, kind = find_name(&length, s->p, s->end), backslash = *s->p == '\\';
    Value numerator;
    if (kind == N_VARIABLE) return parse_variable(s);
    s->p += length;
    if (kind <= LAST_FUNCTION) return parse_function(s, kind);
    switch (kind) {
    case N_SQRT: return parse_root(s, backslash);
    case N_FRAC: numerator = parse_argument(s); return divide(s, numerator, parse_argument(s));
    case N_BINOM: return parse_binomial(s);
    case N_PI: return make_inexact(M_PI, 0);
    case N_E: return make_inexact(2.718281828459045235, 0);
    case N_I: s->names->imaginary = 1; return make_inexact(_Complex_I, 0);
    case N_INFINITY: return (Value){INFINITY, 0, 0, 0};
    }
    return fail_value(s, UNKNOWN);  // an operator where a value should be, or not in the allow-list
}

static Value parse_primary(Parser* s) {
    if (++s->nesting > MAX_NESTING) return fail_value(s, UNKNOWN);
    Value value;
    char c = peek(s);
    if (is_digit(c) || c == '.') value = parse_number(s);
    else if (c == '(' || (s->names && (c == '{' || c == '['))) value = parse_group(s, 0);
    else if (!s->names) value = fail_value(s, UNKNOWN);
    else if (is_letter(c) || c == '\\') value = parse_name(s);
    else if (c == '|' && !s->bars) {
        s->p++;
        s->bars = 1;
        value = apply_function(s, F_ABS, parse_sum(s));
        s->bars = 0;
        if (!accept(s, "|")) value = fail_value(s, UNKNOWN);
    } else value = fail_value(s, UNKNOWN);
    s->nesting--;
    return value;
}

static Value parse_postfix(Parser* s) {
    Value value = parse_primary(s);
    while (s->names && !s->failed) {
        int length = 0, kind = is_letter(peek(s)) ? find_name(&length, s->p, s->end) : N_TEXT;
        if (accept(s, "\"%\"")) value = divide(s, value, make_exact(100, 1));
        else if (accept(s, "\"degree\"")) value = multiply(value, make_inexact(M_PI / 180, 0));
        else if (kind >= N_DOZEN && kind <= N_TRILLION) {
            value = multiply(value, make_exact(MULTIPLIERS[kind - N_DOZEN], 1));
            s->p += length;
        } else if (accept(s, "!")) {
            if (value.den != 1 || value.num < 0 || value.num > 20) return fail_value(s, UNKNOWN);
            Value n = value;
            value = make_exact(1, 1);
            for (int64_t i = 2; i <= n.num; i++) value = multiply(value, make_exact(i, 1));
        } else break;
    }
    return value;
}

static Value parse_power(Parser* s) {
    peek(s);
    const char* start = s->p;
    Value base = parse_postfix(s);
    if (!s->names || !accept(s, "^")) return base;
    int inverse = list_has(FUNCTION_LETTERS, start, (int)(s->p - 1 - start));
    if (++s->nesting > MAX_NESTING) return fail_value(s, UNKNOWN);  // 2^2^2^... nests, too
    Value exponent = parse_signed_power(s);
    s->nesting--;
    if (inverse && peek(s) == '(') return fail_value(s, UNKNOWN);  // f^{-1}(2) is no product
    return s->failed ? base : raise_power(s, base, exponent);
}

// A power with signs in front of it: -x^2 is -(x^2), 5*-2 is -10, x^-1.
static Value parse_signed_power(Parser* s) {
    int negative = 0;
    for (char c = peek(s); c == '-' || c == '+'; c = peek(s)) {
        negative ^= c == '-';
        s->p++;
    }
    Value value = parse_power(s);
    return negative ? negate(value) : value;
}

// May a factor begin here without a sign of multiplication? Never with a digit: \frac919 and x2 have two
// readings.
static int starts_factor(Parser* s, int as_argument) {
    int length;
    char c = peek(s);
    if (!s->names || !c) return 0;
    if (c == '(' || c == '{' || c == '[' || (c == '|' && !s->bars)) return 1;
    if (c != '\\' && !is_letter(c)) return 0;
    int kind = find_name(&length, s->p, s->end);
    return kind != N_OPERATOR && !(as_argument && kind <= LAST_FUNCTION);
}

// as_argument: what a function without parentheses applies to, \sin 2x, which ends at an operator or a
// function
static Value parse_product(Parser* s, int as_argument) {
    Value value = as_argument ? parse_power(s) : parse_signed_power(s);
    while (!s->failed) {
        if (starts_factor(s, as_argument)) value = multiply(value, parse_power(s));
        else if (as_argument) break;
        else if (accept(s, "*")) value = multiply(value, parse_signed_power(s));
        else if (!s->names && accept(s, "//")) {  // 7//2 = 3, see chapter 6
            value = divide(s, value, parse_signed_power(s));
            if (!s->failed) value = apply_function(s, F_FLOOR, value);
        } else if (accept(s, "/")) value = divide(s, value, parse_signed_power(s));
        else break;
    }
    return value;
}

static Value parse_sum(Parser* s) {
    if (++s->nesting > MAX_NESTING) return fail_value(s, UNKNOWN);
    Value sum = make_exact(0, 1);
    for (int first = 1; !s->failed; first = 0) {
        int sign = 1;  // a sign in front of the first term is read with its first power
        if (s->names && accept(s, "\\pm")) sign = s->sign;
        else if (s->names && accept(s, "\\mp")) sign = -s->sign;
        else if (!first && accept(s, "-")) sign = -1;
        else if (!first && !accept(s, "+")) break;
        Value term = parse_product(s, 0);
        if (sign < 0) term = negate(term);
        sum = first ? term : add(sum, term);
    }
    s->nesting--;
    return sum;
}

// The value of an expression at a point: 1 = it has one, 0 = none at this point, -1 = it is no expression. (A
// value that is infinite without rounding error is infinity itself; an overflow has an infinite error.)
static int evaluate_at(Value* value, Names* names, Span text, int point) {
    Parser s = {text.p, text.end, names, point, text.sign, 0, 0, 0};
    *value = parse_sum(&s);
    if (s.failed == UNKNOWN || (!s.failed && peek(&s))) return -1;
    return !s.failed && isfinite(value->error) && !isnan(creal(value->z)) && !isnan(cimag(value->z));
}

// The same by itself. *variables becomes 1 when the expression has variables.
static int evaluate(Value* value, int* variables, Span text, int point) {
    Names names = {0};
    int found = evaluate_at(value, &names, text, point) == 1;
    *variables |= names.count > 0;
    return found;
}

// 1 = the same, 0 = different, -1 = rounding leaves no way to tell. Exact fractions are compared exactly, and
// another value may differ by what its rounding explains (two of them by 1e-12 of their size besides, because
// the bounds on the errors of functions are rough). An exact number with more than 12 digits is never the
// value of a root or of pi: people write so many digits when they round. A value of which rounding has left
// nothing, such as 10^30 pi - 10^30 pi, would "equal" every number, and a policy would find that out.
static int compare_values(Value a, Value b) {
    static const int64_t LONG = 1000000000000;
    if (a.den && b.den) return a.num == b.num && a.den == b.den;
    double size = fmax(cabs(a.z), cabs(b.z)), slack = 16 * (a.error + b.error);
    if (!isfinite(size)) return a.z == b.z;
    if (llabs(a.num) > LONG || llabs(b.num) > LONG) return 0;
    if (!(slack <= 1e-6 * (1 + size))) return -1;
    return cabs(a.z - b.z) <= slack + (a.den || b.den ? 0 : 1e-12 * size);
}

static int same_value(Value a, Value b) { return compare_values(a, b) == 1; }
static int is_zero(Value a) { return cabs(a.z) <= 16 * a.error; }

// left - right at a point; 1, 0 and -1 as evaluate_at
static int evaluate_difference(Value* value, Names* names, Span left, Span right, int point) {
    Value x, y;
    int has_x = evaluate_at(&x, names, left, point), has_y = evaluate_at(&y, names, right, point);
    if (has_x < 0 || has_y < 0) return -1;
    *value = add(x, negate(y));
    return has_x && has_y && !isnan(creal(value->z));
}

// Are f = left_a - right_a and g = left_b - right_b the same at all points? As expressions f = g must hold.
// Two equations f = 0 and g = 0 are the same when f is a constant times g, that is when the quotient is the
// same at all points; written f(0) g(p) = f(p) g(0) it needs no division. Numbers need only one point. Points
// without a value don't count, nor a difference where neither is real, as sqrt(x^3) and x sqrt(x) at -2:
// variables are real.
static int same_at_all_points(Span left_a, Span right_a, Span left_b, Span right_b, int equations) {
    enum { ENOUGH = 4 };
    Value f, g, f0 = make_exact(1, 1), g0 = f0;
    Names names = {0};
    int compared = 0;
    for (int point = 0; point < EVALUATION_POINTS; point++) {
        int has_f = evaluate_difference(&f, &names, left_a, right_a, point);
        int has_g = has_f < 0 ? -1 : evaluate_difference(&g, &names, left_b, right_b, point);
        if (has_g < 0) return 0;
        if (!names.count) return !equations && has_f && has_g && same_value(f, g);
        if (!has_f || !has_g) continue;
        if (equations && is_zero(f) && is_zero(g)) continue;  // 0 = 0 says nothing
        if (equations && compared == 0) {
            if (is_zero(f) || is_zero(g)) return 0;
            f0 = f;
            g0 = g;
        }
        int same = compare_values(multiply(f0, g), multiply(f, g0));
        if (!same && (names.imaginary || cimag(f.z) == 0 || cimag(g.z) == 0)) return 0;
        compared += same == 1;
    }
    return compared >= ENOUGH;
}

// Writes a plain decimal of any length in its shortest form: -012.50, 1`000 and 0.5 become -12.5, 1000 and
// .5. out needs one byte more than the text. 1 = done, 0 = something else. Most answers are such numbers:
// this is their short way.
static int shorten_decimal(char* out, Span text) {
    const char* p = text.p;
    int n = 0, digits = 0, dot = 0, sign = p < text.end && *p == '-';
    if (sign) out[n++] = '-';
    if (p < text.end && (*p == '-' || *p == '+')) p++;
    for (; p < text.end; p++) {
        if (*p == '`') continue;
        if (*p == '.' ? dot : !is_digit(*p)) return 0;
        dot |= *p == '.';
        digits |= *p != '.';
        if (*p != '0' || n > sign) out[n++] = *p;  // no zeros in front
    }
    while (dot && n > sign && (out[n - 1] == '0' || out[n - 1] == '.')) dot = out[--n] != '.';
    if (n == sign) {  // -0 is 0
        n = 0;
        out[n++] = '0';
    }
    out[n] = 0;
    return digits;
}

// 1 = both are plain decimals, and *equal tells whether they are the same
static int decimals_equal(int* equal, Span a, Span b) {
    char x[MAX_NORMALIZED + 1], y[MAX_NORMALIZED + 1];
    if (!shorten_decimal(x, a) || !shorten_decimal(y, b)) return 0;
    *equal = !strcmp(x, y);
    return 1;
}

static int expressions_equal(Span a, Span b) {
    int equal;
    if (decimals_equal(&equal, a, b)) return equal;
    return same_at_all_points(a, make_span("0"), b, make_span("0"), 0);
}

/* ---- A.3 The shapes ----
 *
 * An answer is a list of items, mostly of one. An item is a word, a quantity with a unit, an equation, an
 * inequality, a set of numbers, a tuple, and in the end an expression. Each rule below peels one of these off
 * and compares what is inside. What fits no rule is unequal.
 */
typedef struct { int budget, depth, strict; } Comparison;  // work left; levels of items; must names agree?

enum { ORDERED, ANY_ORDER, AS_SETS };  // two lists; in a set a repeated item counts once

static int compare_item(Span a, Span b, Comparison* c);
static int compare_list(Span a, Span b, const char* separator, int mode, Comparison* c);

static int contains(Span s, const char* token) {
    while (s.p < s.end && !starts_with(s.p, s.end, token)) s.p++;
    return s.p < s.end;
}

static int is_bracketed(Span s) {  // is all of s one bracket, which closes at its very end?
    return s.end - s.p >= 2 && bracket_step(*s.p) == 1 && find_close(s.p, s.end) == s.end - 1;
}

static Span inside(Span s) { return trim_span((Span){s.p + 1, s.end - 1, s.sign}); }

// Two letters that are a word, not a product, when they are the whole answer.
static const char SHORT_WORDS[] = "no on or is it in if to so do go be by at as am he we me my us up of ok";

// Is s words and not mathematics? Yes if it is "..." with a letter in it. Yes if it is bare letters with a
// run that is text (Evelyn), or two letters that are a short word or have a capital (IV); xy, \pi r, cotx are
// not.
static int is_word(Span s) {
    int word = 0, length;
    if (s.end - s.p > 2 && *s.p == '"' && memchr(s.p + 1, '"', (size_t)(s.end - s.p - 1)) == s.end - 1) {
        while (++s.p < s.end) word |= is_letter(*s.p);
        return word;
    }
    const char* start = s.p;
    while (s.p < s.end) {
        if (!is_letter(*s.p) && !strchr(" -'\"", *s.p)) return 0;
        const char* run = s.p;
        while (s.p < s.end && is_letter(*s.p)) s.p++;
        int n = (int)(s.p - run);
        if (n == 0) s.p++;
        else if (n > 2) word |= find_name(&length, run, s.end) == N_TEXT;
        else if (n == 2 && (*run < 'a' || run[1] < 'a')) word = 1;
        else if (s.end - start == 2) word = list_has(SHORT_WORDS, run, n);
    }
    return word;
}

// Capitals don't matter in words, but in what may be names: AB, r. One letter in quotes is a choice, (c) or
// (C).
static int words_equal(Span a, Span b) {
    int choice = *a.p == '"' && *b.p == '"', n = 0;
    char small[2];
    for (const char* p = a.p; p < a.end; p++)
        if (is_letter(*p) && n++ < 2) small[n - 1] = (char)lower_case(*p);
    int any_case = n > 2 || (n == 1 && choice) || (n == 2 && list_has(SHORT_WORDS, small, 2));
    return same_text(a, b, 1, any_case);
}

// The unit that the n letters at p name, as a number; 0 = not in the table. "unit" is 1.
static uint64_t unit_number(const char* p, int n, int quoted) {
    char word[32];
    if (n > 20 || (n == 1 && !quoted)) return 0;
    for (int k = 0; k < n; k++) word[k] = (char)(n > 2 || (n == 2 && quoted) ? lower_case(p[k]) : p[k]);
    for (int cut = 0; cut <= 2 && cut < n && (!cut || word[n - 1] == 's'); cut++) {  // cups, boxes
        int row = 0;
        while (row < UNIT_ROWS && !list_has(UNITS[row], word, n - cut)) row++;
        uint64_t number = (uint64_t)row + 1;
        for (int k = 0; k < n - cut && row == UNIT_ROWS - 1; k++) number = number * 131 + (uint64_t)word[k];
        if (row < UNIT_ROWS) return row ? mix_u64(number) : 1;
    }
    return 0;
}

// Is all of [p, end) a unit? *unit becomes the sum of its parts: square inches and in^{2} are twice in, miles
// per hour and mph are mi less hour.
static int read_unit(uint64_t* unit, const char* p, const char* end) {
    uint64_t part = 0, times = 1, sign = 1;
    int quoted = 0, n;
    for (*unit = 0; p < end; p += n) {
        for (n = *p == '%' || *p == '$'; p + n < end && is_letter(p[n]);) n++;
        if (n == 3 && !memcmp(p, "per", 3)) sign = (uint64_t)0 - 1;
        else if (list_has("square sq", p, n)) times = 2;
        else if (list_has("cubic", p, n)) times = 3;
        else if (n && !(part = list_has("mph", p, n) ? unit_number("mi", 2, 0) - unit_number("hour", 4, 0)
                                                     : unit_number(p, n, quoted || part))) return 0;
        else if (n) {
            *unit += part == 1 ? 0 : part * times * sign;
            times = 1;
        } else {
            if (*p == '/' && part) sign = (uint64_t)0 - 1;
            else if (is_digit(*p) && part) *unit += part == 1 ? 0 : part * sign * (uint64_t)(*p - '1');
            else if (!strchr("\" .^{}", *p)) return 0;
            quoted ^= *p == '"';
            n = 1;
        }
    }
    return part != 0;
}

// Takes the unit off a quantity: 5"cm"^2, 5.4cents, 36\pi cm, "$"36, 90"degree", 12^{"th"}. *s keeps the
// number. 1 = there was one.
static int split_unit(Span* s, uint64_t* unit) {
    static const char* const angles[] = {"sin", "cos", "tan", "cot", "sec", "csc"};
    int depth = 0, quoted = *s->p == '"';
    const char* close = quoted ? memchr(s->p + 1, '"', (size_t)(s->end - s->p - 1)) : NULL;
    if (close && close + 1 < s->end && read_unit(unit, s->p, close + 1)) {
        *s = trim_span((Span){close + 1, s->end, s->sign});
        return 1;
    }
    for (const char* p = s->p + 1; p < s->end; p++) {
        int raised = p - s->p > 2 && p[-1] == '{' && p[-2] == '^';
        int start = *p == '"' ? !quoted : !quoted && is_letter(*p) && strchr("0123456789)}!\" {", p[-1]);
        if (start && depth == raised && read_unit(unit, p, s->end)) {
            for (int i = 0; i < 6 && *unit == unit_number("deg", 3, 0); i++)
                if (contains(*s, angles[i])) goto none;  // \sin 30^\circ isn't a number of degrees
            *s = trim_span((Span){s->p, p - 2 * raised, s->sign});
            return 1;
        }
        quoted ^= *p == '"';
        depth += quoted ? 0 : bracket_step(*p);
    }
none:
    *unit = 0;
    return 0;
}

// Two quantities. A unit that only one side names may be left out (90 for 90^\circ), two different ones never
// agree, and nothing is converted. People write 50\% for 50, when asked for percent, and for 0.5: both are
// accepted. So equality is not transitive here: 50 is 50\%, and 50\% is 1/2, but 50 is not 1/2.
static int compare_quantities(Span a, Span b, uint64_t unit_a, uint64_t unit_b, Comparison* c) {
    Value x, y, hundred = make_exact(100, 1);
    uint64_t percent = unit_number("%", 1, 1);
    int variables = 0, percent_a = unit_a == percent, percent_b = unit_b == percent;
    if (unit_a && unit_b && unit_a != unit_b) return 0;
    if (compare_item(a, b, c)) return 1;
    if (percent_a == percent_b) return 0;
    if (!evaluate(&x, &variables, a, 0) || !evaluate(&y, &variables, b, 0) || variables) return 0;
    return same_value(percent_a ? x : multiply(x, hundred), percent_b ? y : multiply(y, hundred));
}

// Cuts s at its separators. An item with \pm counts as two, one for each sign. Returns how many, -1 = too
// many.
static int split_items(Span* items, Span s, const char* separator) {
    for (int n = 0, which;;) {
        const char* cut = find_outside(&which, s, &separator, 1);
        Span item = trim_span((Span){s.p, cut ? cut : s.end, s.sign});
        int both = s.sign == 0 && (contains(item, "\\pm") || contains(item, "\\mp"));
        if (n + 1 + both > MAX_ITEMS) return -1;
        for (int k = 0; k <= both; k++) {
            items[n] = item;
            if (both) items[n].sign = k ? -1 : 1;
            n++;
        }
        if (!cut) return n;
        s.p = cut + strlen(separator);
    }
}

// Is s a name that an equation may give a value to: x, x_{1}, \theta, f(x), "Area", (p,q)? Not xy, not
// \sin(x).
static int is_name(Span s) {
    Span items[MAX_ITEMS];
    if (s.p < s.end && *s.p == '"') return is_word(s);
    if (s.p == s.end || *s.p != '(' || !is_bracketed(s)) return end_of_name(s.p, s.end) == s.end;
    int n = split_items(items, inside(s), ",");
    for (int i = 0; i < n; i++)
        if (end_of_name(items[i].p, items[i].end) != items[i].end) return 0;
    return n > 1;
}

static const char* const RELATIONS[] = {"<=", ">=", "!=", "=", "<", ">", "\xe2\x88\x88"};
enum { R_LE, R_GE, R_NOT_EQUAL, R_EQUAL, R_LESS, R_GREATER, R_IN, RELATIONS_COUNT };

typedef struct {
    Span part[3];  // 0 < x <= 5 has three parts
    int parts, relation[2], name;  // which part is a name; -1 = none
} Statement;

// Cuts s at its relations. What falls is turned round, so that it rises: x > 3 is 3 < x. parts is 0 when
// there are more than three.
static Statement read_statement(Span s) {
    static const int turned[] = {R_GE, R_LE, R_NOT_EQUAL, R_EQUAL, R_GREATER, R_LESS, R_IN};
    Statement r = {{s, s, s}, 0, {R_NOT_EQUAL, R_NOT_EQUAL}, -1};
    const char* cut;
    do {
        int which, n = r.parts++;
        cut = find_outside(&which, s, RELATIONS, RELATIONS_COUNT);
        r.part[n] = trim_span((Span){s.p, cut ? cut : s.end, s.sign});
        if (cut && n < 2) r.relation[n] = which;
        if (cut) s.p = cut + strlen(RELATIONS[which]);
    } while (cut && r.parts < 3);
    if (cut) r.parts = 0;
    if (r.relation[0] == R_GE || r.relation[0] == R_GREATER) {
        Statement old = r;
        for (int i = 0; i < r.parts; i++) r.part[i] = old.part[r.parts - 1 - i];
        for (int i = 0; i < r.parts - 1; i++) r.relation[i] = turned[old.relation[r.parts - 2 - i]];
    }
    for (int i = r.parts - 1; i >= 0 && r.parts > 1; i--)
        if (is_name(r.part[i])) r.name = i;  // x = 5 or 5 = x
    return r;
}

/* Sets of numbers: intervals, finite sets, what an inequality for one name means, their unions and
 * differences. Two sets are the same when the same numbers belong to them, and few numbers can tell: each end
 * of an interval, one between any two ends, and one beyond on either side.
 */
typedef struct { Value low, high; int has_low, has_high, removed; } Interval;
typedef struct { Interval piece[2 * MAX_ITEMS]; int pieces, failed; Span name; } NumberSet;

static int order_values(Value a, Value b) { return same_value(a, b) ? 0 : creal(a.z) < creal(b.z) ? -1 : 1; }

static void add_interval(NumberSet* set, Span low, Span high, int has_low, int has_high, int removed) {
    Interval v = {.has_low = has_low, .has_high = has_high, .removed = removed};
    int variables = 0, known = evaluate(&v.low, &variables, low, 0) && evaluate(&v.high, &variables, high, 0);
    if (!known || variables || cimag(v.low.z) != 0 || cimag(v.high.z) != 0) set->failed = 1;
    else if (order_values(v.low, v.high) > (has_low && has_high ? 0 : -1)) set->failed = 1;
    else if (set->pieces == 2 * MAX_ITEMS) set->failed = 1;
    else set->piece[set->pieces++] = v;
}

static void add_inequality(NumberSet* set, Statement r, int removed) {
    Span low = make_span("-\\infty"), high = make_span("\\infty");
    int at = r.name, rises = 1;
    for (int i = 0; i < r.parts - 1; i++) rises &= r.relation[i] == R_LE || r.relation[i] == R_LESS;
    if (at < 0 || *r.part[at].p == '(' || (r.parts == 3 && at != 1)) set->failed = 1;
    else if (set->name.p && !same_text(set->name, r.part[at], 0, 0)) set->failed = 1;
    else set->name = r.part[at];
    if (set->failed) return;
    if (rises)
        add_interval(set, at ? r.part[at - 1] : low, at < r.parts - 1 ? r.part[at + 1] : high,
                     at && r.relation[at - 1] == R_LE, at < r.parts - 1 && r.relation[at] == R_LE, removed);
    else if (r.parts == 2 && r.relation[0] == R_NOT_EQUAL && !removed) {
        add_interval(set, low, high, 0, 0, 0);
        add_interval(set, r.part[!at], r.part[!at], 1, 1, 1);
    } else set->failed = 1;
}

static const char* const SET_OPERATORS[] = {"\\cup", "\\setminus", "\\cap"};

static void read_set(NumberSet* set, Span s) {
    int which = 0, removed = 0;
    for (const char* cut = s.p; cut && !set->failed; removed = which) {
        cut = find_outside(&which, s, SET_OPERATORS, 3);
        Span part = trim_span((Span){s.p, cut ? cut : s.end, s.sign}), items[MAX_ITEMS];
        Statement r = read_statement(part);
        int bracket = is_bracketed(part), empty = bracket && inside(part).p >= inside(part).end;
        int n = bracket && !empty ? split_items(items, inside(part), ",") : 0;
        if (r.parts > 1) add_inequality(set, r, removed);
        else if (bracket && *part.p == '{')
            for (int i = 0; i < n; i++) add_interval(set, items[i], items[i], 1, 1, removed);
        else if (n == 2) add_interval(set, items[0], items[1], *part.p == '[', part.end[-1] == ']', removed);
        else set->failed = 1;
        if (which == 2 && cut) set->failed = 1;
        if (cut) s.p = cut + strlen(SET_OPERATORS[which]);
    }
}

static int is_member(const NumberSet* set, Value x) {
    int in = 0;
    for (int i = 0; i < set->pieces; i++) {
        const Interval* v = &set->piece[i];
        int above = order_values(x, v->low), below = order_values(x, v->high);
        int after_low = above > 0 || (above == 0 && v->has_low);
        if (after_low && (below < 0 || (below == 0 && v->has_high))) in = !v->removed;
    }
    return in;
}

static int sets_equal(Span a, Span b) {
    NumberSet x = {.failed = 0}, y = {.failed = 0};
    double end[8 * MAX_ITEMS + 1] = {0};
    int n = 1, same = 1;
    read_set(&x, a);
    y.name = x.name;
    read_set(&y, b);
    if (x.failed || y.failed) return 0;
    for (int i = 0; i < x.pieces + y.pieces; i++) {
        const Interval* v = i < x.pieces ? &x.piece[i] : &y.piece[i - x.pieces];
        end[n++] = creal(v->low.z);
        end[n++] = creal(v->high.z);
    }
    for (int i = 0; i < n && same; i++)
        for (int j = 0; j <= i + 2 && same; j++) {
            double test = j <= i ? end[i] / 2 + end[j] / 2 : end[i] + (j == i + 1 ? 1 : -1);
            Value value = make_inexact(test, 0);
            same = !isfinite(test) || is_member(&x, value) == is_member(&y, value);
        }
    return same;
}

// Items with a relation. An equation for a name may be answered by the value alone: x = 5 by 5, f(x) = 2x by
// 2x, x \in [0,1] by [0,1].
static int compare_relations(Span a, Span b, Comparison* c) {
    Statement r[2] = {read_statement(a), read_statement(b)};
    Span value[2], name[2];
    int named[2];
    for (int k = 0; k < 2; k++) {
        int equation = r[k].relation[0] == R_EQUAL || r[k].relation[0] == R_IN;
        named[k] = r[k].parts == 2 && r[k].name >= 0 && equation;
        value[k] = named[k] ? r[k].part[!r[k].name] : r[k].part[0];
        name[k] = r[k].part[named[k] ? r[k].name : 0];
    }
    if (!r[0].parts || !r[1].parts) return 0;
    if (r[0].parts != r[1].parts)
        return ((named[0] && r[1].parts == 1) || (named[1] && r[0].parts == 1)) && !c->strict &&
               compare_item(value[0], value[1], c);
    if (memcmp(r[0].relation, r[1].relation, sizeof r[0].relation) || r[0].parts == 1) return 0;
    int same_name = named[0] && named[1] && same_text(name[0], name[1], 0, 0);
    if (same_name && compare_item(value[0], value[1], c)) return 1;
    if (r[0].parts == 2 && r[0].relation[0] == R_EQUAL)
        return same_at_all_points(r[0].part[0], r[0].part[1], r[1].part[0], r[1].part[1], 1);
    int same = 1;
    for (int i = 0; i < r[0].parts && same; i++) same = compare_item(r[0].part[i], r[1].part[i], c);
    return same;
}

static int is_tuple(Span s) {  // (1,2), {1,2}, [[1,2]]
    static const char* const comma[] = {","};
    int which;
    return is_bracketed(s) && (find_outside(&which, inside(s), comma, 1) || (*s.p == '[' && s.p[1] == '['));
}

static Span peel(Span s) {  // (5) is 5, and a matrix in brackets is a matrix
    while (is_bracketed(s) && (*s.p == '[' ? starts_with(s.p, s.end, "[[[") : !is_tuple(s))) s = inside(s);
    return s;
}

static int compare_item(Span a, Span b, Comparison* c) {
    uint64_t unit_a, unit_b;
    a = trim_span(a);
    b = trim_span(b);
    c->budget -= (int)(a.end - a.p) + (int)(b.end - b.p) + 1;
    if (c->budget < 0 || a.p == a.end || b.p == b.end || c->depth >= 12) return 0;
    if (same_text(a, b, 0, 0)) return 1;
    if (is_word(a) || is_word(b)) return words_equal(a, b);
    int equal, relation, set_a, set_b, units = split_unit(&a, &unit_a) + split_unit(&b, &unit_b);
    a = peel(a);
    b = peel(b);
    if (!find_outside(&set_a, a, SET_OPERATORS, 3)) set_a = -1;
    if (!find_outside(&set_b, b, SET_OPERATORS, 3)) set_b = -1;
    int related = find_outside(&relation, a, RELATIONS, RELATIONS_COUNT) ||
                  find_outside(&relation, b, RELATIONS, RELATIONS_COUNT);
    c->depth++;
    if (units) equal = compare_quantities(a, b, unit_a, unit_b, c);
    else if ((related || set_a >= 0 || set_b >= 0) && sets_equal(a, b)) equal = 1;
    else if (related) equal = compare_relations(a, b, c);
    else if (set_a >= 0 || set_b >= 0)
        equal = set_a == set_b &&
                compare_list(a, b, SET_OPERATORS[set_a], set_a == 1 ? ORDERED : ANY_ORDER, c);
    else if (is_tuple(a) && is_tuple(b))  // (0,1] isn't [0,1]; the order counts, except in a set
        equal = *a.p == *b.p && a.end[-1] == b.end[-1] &&
                compare_list(inside(a), inside(b), ",", *a.p == '{' ? AS_SETS : ORDERED, c);
    else equal = expressions_equal(a, b);
    c->depth--;
    return equal;
}

// Do items have names, as in x=2, y=3? 0 = none has, 1 = there is one name (x = 2 or 3), 2 = several.
static int count_names(const Span* items, int n) {
    int named = 0, same = 0;
    Span first = items[0];
    for (int i = 0; i < n; i++) {
        Statement r = read_statement(items[i]);
        if (r.name < 0) continue;
        if (named++ == 0) first = r.part[r.name];
        same += same_text(first, r.part[r.name], 0, 0);
    }
    return named == 0 ? 0 : same == named ? 1 : 2;
}

// Does each item of a find a partner in b: the one in its place, or any that is still free? In a set the same
// may serve twice, and then each item of b needs one in a, too. Names that only one list has may be left out
// when it is the same name, or else in the order of the list: 2, 3 for x=2, y=3. Names in both must agree.
static int compare_list(Span a, Span b, const char* separator, int mode, Comparison* c) {
    Span items_a[MAX_ITEMS], items_b[MAX_ITEMS];
    int used[MAX_ITEMS] = {0}, strict = c->strict, matched = 0;
    int n = split_items(items_a, a, separator), m = split_items(items_b, b, separator);
    if (n < 0 || m < 0 || (n != m && mode != AS_SETS)) return 0;
    if (n > 1 && mode == ANY_ORDER) {
        int names_a = count_names(items_a, n), names_b = count_names(items_b, m);
        c->strict |= names_a && names_b;
        if (names_a + names_b == 2 && !c->strict) mode = ORDERED;
    }
    for (int i = 0; i < n && matched == i; i++) {
        int j = mode == ORDERED ? i : 0, stop = mode == ORDERED ? i + 1 : m;
        while (j < stop && ((used[j] && mode != AS_SETS) || !compare_item(items_a[i], items_b[j], c))) j++;
        if (j == stop) break;
        used[j] = 1;
        matched++;
    }
    for (int j = 0; j < m && matched == n && mode == AS_SETS; j++) {
        int i = 0;
        while (i < n && !used[j] && !compare_item(items_a[i], items_b[j], c)) i++;
        if (i == n) matched = -1;
    }
    c->strict = strict;
    return matched == n;
}

// Are two final answers the same mathematics? a and b are what extract_* finds or a data set calls the
// answer: LaTeX, Unicode or plain typing. 1 = the same. 0 = different, not understood, empty, or longer than
// MAX_ANSWER bytes; but the same text is equal to itself at any length. Symmetric, because the two are put in
// a fixed order first. The time grows linearly with the length. The head of chapter 5 says what "the same"
// can and can't see.
int answers_equal(const char* a, const char* b) {
    if (!*a || !*b) return 0;
    int equal, order = strcmp(a, b);
    if (order == 0) return 1;
    if (strlen(a) > MAX_ANSWER || strlen(b) > MAX_ANSWER) return 0;
    if (decimals_equal(&equal, make_span(a), make_span(b))) return equal;
    Normalized first, second;
    if (!normalize(&first, order < 0 ? a : b) || !normalize(&second, order < 0 ? b : a)) return 0;
    Span x = trim_span(make_span(first.text)), y = trim_span(make_span(second.text));
    if (x.p == x.end || y.p == y.end) return 0;
    if (same_text(x, y, 0, 0)) return 1;
    Comparison c = {64 * (first.length + second.length + 2), 0, 0};
    if (compare_list(x, y, ",", ANY_ORDER, &c)) return 1;
    if (*x.p == '{' && is_bracketed(x)) x = inside(x);  // the solutions 1, 2 are the set {2, 1}
    if (*y.p == '{' && is_bracketed(y)) y = inside(y);
    return compare_list(x, y, ",", ANY_ORDER, &c);
}
/* ---- A.4 Shown in lesson 5 ---- */

// Solves left = right for x when both sides are linear in it: take the difference at two points and follow
// the straight line to zero, x = x0 - f0 (x1 - x0) / (f1 - f0). NAN = there is no solution, or an expression
// is wrong.
static double solve_linear(const char* left, const char* right) {
    Value x[2], f[2];
    Names names = {0};
    for (int point = 0; point < 2; point++) {
        if (evaluate_at(&x[point], &names, make_span("x"), point) != 1) return NAN;
        if (evaluate_difference(&f[point], &names, make_span(left), make_span(right), point) != 1) return NAN;
    }
    Value rise = add(f[1], negate(f[0]));
    return is_zero(rise) ? NAN : creal(x[0].z - f[0].z * (x[1].z - x[0].z) / rise.z);
}

static void print_comparisons(void) {
    static const char* const pairs[][2] = {
        {"\\frac{14}{3}", "14/3"}, {"1/3", "0.333333"}, {"11,\\! 111", "11111"}, {"90^\\circ", "90"},
        {"52_8", "528"},
        {"3, 5, 7", "7,3,5"}, {"(3,4]", "[3,4]"}, {"1 \\pm \\sqrt{19}", "1-sqrt(19), 1+sqrt(19)"},
        {"y = 2x + 3", "2x - y + 3 = 0"}, {"(x+1)^2", "x^2 + 2x + 1"}, {"(x+1)^2", "x^2 + 1"},
        {"\\sqrt{x^2}", "x"}};
    static const char* const columns[] = {"x", "(x+1)^2", "x^2+2x+1", "x^2+1"};
    printf("The same answer? Normalize the spelling, then evaluate:\n\n");
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        printf("  %-18s %-24s %s\n", pairs[i][0], pairs[i][1],
               answers_equal(pairs[i][0], pairs[i][1]) ? "the same" : "different");
    printf("\nWhat it sees of (x+1)^2 are its values at %d fixed points, first of all these:\n\n  point",
           EVALUATION_POINTS);
    for (int i = 0; i < 4; i++) printf("%12s", columns[i]);
    for (int point = 0; point < 3; point++) {
        printf("\n  %5d", point);
        for (int i = 0; i < 4; i++) {
            Value value;
            int variables = 0, ok = evaluate(&value, &variables, make_span(columns[i]), point);
            printf("%12.4g", ok ? creal(value.z) : NAN);
        }
    }
    printf("\n\n");
}

/* ---- A.5 The calculator of chapter 6 ----
 *
 * It is total: every text gets a short result or none, and soon. (A tool that hands its text to a real
 * interpreter is stopped by one 9**9**9, and a policy that is paid for right answers searches for such
 * holes.) Fractions are exact inside: 0.1+0.2 is 0.3, not 0.30000000000000004. The result is text that the
 * model will copy, so it is printed as GSM8K prints it: 24, 0.2.
 */
// Prints a value: whole numbers in full, others with up to 12 significant digits and no zeros at the end. 1 =
// printed; 0 = it doesn't fit, or 12 digits don't describe it.
static int print_value(char* out, int cap, Value value) {
    char text[64];
    double v = creal(value.z), size = fabs(v);
    if (value.den == 1) snprintf(text, sizeof text, "%lld", (long long)value.num);
    else if (!(size >= 1e-12 && size < 1e15)) return 0;
    else {
        int decimals = 11 - (int)floor(log10(size));  // 12 significant digits: 66.6666666667 has 10 decimals
        snprintf(text, sizeof text, "%.*f", decimals > 0 ? decimals : 0, v);
        char* end = text + strlen(text);
        while (strchr(text, '.') && (end[-1] == '0' || end[-1] == '.')) *--end = 0;
    }
    return copy_trimmed(out, cap, text, text + strlen(text));
}

// The tool. Evaluates numbers (also 1,000 and .5) with + - * / and parentheses, and with //, which rounds the
// quotient down: 2 of the 27,998 annotations <<48/2=24>> of GSM8K use it. out has cap bytes. 1 = evaluated. 0
// = no output, and out is "": a power, a name or any other character, a missing operator, division by zero,
// more than EXPRESSION_SIZE bytes, parentheses too deep, or a result too large or too small to print.
int calculate(const char* expression, char* out, int cap) {
    if (cap > 0) out[0] = 0;
    size_t length = strlen(expression);
    if (length > EXPRESSION_SIZE || strspn(expression, "0123456789+-*/()., ") != length) return 0;
    Parser s = {expression, expression + length, NULL, 0, 0, 0, 0, 0};
    Value value = parse_sum(&s);
    if (s.failed || peek(&s)) return 0;
    return print_value(out, cap, value);
}

// ==========================================================================================================
// The claims ledger: ./rl claims
// ==========================================================================================================
//
// The checkable statements of the three documents, in our own words, each with the function that computes it.
// The number that a document claims may stand here; the number that is found never does: it comes out of the
// chapters' functions, and the verdict comes out of the two. Break a chapter, and a verdict here turns over.
//
// A check writes what it found and returns one of three verdicts:
//
//     holds                      as the document says it
//     holds with a condition     not in general, but under a condition that the found text names
//     does not hold as printed   the computation says otherwise; the found text says what is true instead
//
// Statements about the history of a model, or about work that somebody else measured, are not here: nothing
// in this file could prove them wrong.

typedef enum { HOLDS, HOLDS_WITH_CONDITION, DOES_NOT_HOLD, VERDICTS } Verdict;

static const char* const verdict_names[VERDICTS] = {"holds", "holds with a condition",
                                                    "does not hold as printed"};

typedef Verdict (*ClaimCheck)(Text* found);

typedef struct {
    int document;                  // 1, 2, 3 for D1, D2, D3
    const char *place, *statement; // where in the document, and what it says, in our words
    ClaimCheck check;
} Claim;

static Verdict decide(int as_printed, int under_condition) {
    return as_printed ? HOLDS : under_condition ? HOLDS_WITH_CONDITION : DOES_NOT_HOLD;
}

// A printed number holds when the computed one rounds to it, at the decimals that are printed; and on the
// condition that it was cut, not rounded, when its first decimals agree.
static Verdict compare_printed(double computed, double claimed, int decimals) {
    double unit = pow(10.0, -decimals), slack = 1e-9 * fmax(unit, fabs(claimed));
    int rounded = fabs(computed - claimed) <= 0.5 * unit + slack;
    int cut = computed >= claimed - slack && computed < claimed + unit;
    return decide(rounded, cut);
}

// The 27-answer model of chapter 4, ready to be asked: toy_fill's logits number k at a scale, with the 0/1
// reward.
typedef struct {
    double theta[TOY_PARAMS], logp[TOY_PARAMS], reward[TOY_PARAMS];
    double J, value[TOY_STATES], grad[TOY_PARAMS]; // expected reward, V of each prefix, gradient of J
} Toy;

static Toy toy_new(int k, double scale) {
    Toy toy;
    toy_fill(toy.theta, TOY_PARAMS, k, scale);
    toy_log_policy(toy.logp, toy.theta);
    toy_rewards(toy.reward);
    toy.J = toy_solve(toy.value, toy.grad, toy.logp, toy.reward);
    return toy;
}

// ---- D1

static const float sixteen_rewards[16] = {1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};

// The first c of K rewards are 1.
static void reward_first(float* reward, int K, int c) {
    for (int k = 0; k < K; k++) reward[k] = k < c ? 1.0f : 0.0f;
}

static Verdict claim_start_model(Text* found) {
    double never = no_signal_odds(0.0, 16), rare = no_signal_odds(0.001, 16), often = no_signal_odds(0.2, 16);
    text_printf(found,
                "share of groups of 16 without any signal: %.4g when no answer is ever right, %.4f when 1 "
                "in 1000 is, %.4f when 1 in 5 is",
                never, rare, often);
    return decide(never == 1.0 && rare > 0.9 && often < 0.1, 0);
}

static Verdict claim_temperature(Text* found) {
    const double temperatures[] = {1.0, 0.3, 0.1, 0.02};
    double last = 0.0;
    int rises = 1;
    text_printf(found, "27-answer model, odds that a group of 16 has no signal:");
    for (int i = 0; i < 4; i++) {
        double silent = no_signal_odds(toy_new(1, 1.0 / temperatures[i]).J, 16);
        text_printf(found, "%s %.4f at temperature %g", i ? "," : "", silent, temperatures[i]);
        rises &= silent > last;
        last = silent;
    }
    return decide(rises && last > 0.99, 0);
}

static Verdict claim_silent_group(Text* found) {
    float reward[16], adv[16], logp[32], dlogp[32];
    int mask[32], not_zero = 0;
    for (int i = 0; i < 32; i++) logp[i] = -1.0f, mask[i] = 1;
    for (int all_right = 0; all_right <= 1; all_right++) {
        for (int rule = 0; rule < RULES; rule++) {
            reward_first(reward, 16, all_right ? 16 : 0);
            advantages_by_rule(adv, reward, 16, rule);
            loss_policy_gradient(dlogp, logp, adv, mask, 16, 2, NORM_TOKEN_MEAN);
            for (int k = 0; k < 16; k++) not_zero += adv[k] != 0.0f; // a NaN is not 0 either
            for (int i = 0; i < 32; i++) not_zero += dlogp[i] != 0.0f;
        }
    }
    text_printf(found,
                "16 equal rewards, all 0 or all 1, under %d rules: %d advantages or gradients differ from 0",
                RULES, not_zero);
    return decide(not_zero == 0, 0);
}

// The number behind the FIRST ####: the same function, on the text up to the second mark.
static int extract_first_hash(char* out, int cap, const char* text) {
    char head[128];
    const char* first = strstr(text, "####");
    const char* second = first ? strstr(first + 4, "####") : NULL;
    snprintf(head, sizeof head, "%.*s", second ? (int)(second - text) : (int)strlen(text), text);
    return extract_hash_answer(head, out, cap);
}

static Verdict claim_last_hash(Text* found) {
    const char* const texts[] = {"17+25=42. #### 42", "#### $1,000 in all", "#### 41, no, #### 42"};
    int same[3];
    char first[64], last[64];
    for (int i = 0; i < 3; i++) {
        extract_first_hash(first, sizeof first, texts[i]);
        extract_hash_answer(texts[i], last, sizeof last);
        same[i] = !strcmp(first, last);
    }
    text_printf(found,
                "\"%s\": the last is %s, the first %s. nanochat's code searches for the first, this program "
                "for the last. With a single mark: %s",
                texts[2], last, first, same[0] && same[1] ? "no difference" : "a difference");
    return decide(same[0] && same[1] && same[2], same[0] && same[1]);
}

static Verdict claim_same_number(Text* found) {
    const char* const right[] = {"#### 42", "#### 42.", "#### 42.0", "#### $42", "#### +42", "#### 84/2"};
    const char* const wrong[] = {"#### 41", "#### 420", "#### forty-two", "The answer is 42"};
    int paid = 0, spelled = 0, wrongly = 0;
    for (int i = 0; i < 6; i++) {
        paid += reward_gsm8k(right[i], "... #### 42") == 1.0f;
        spelled += !strcmp(right[i] + 5, "42");
    }
    for (int i = 0; i < 4; i++) wrongly += reward_gsm8k(wrong[i], "... #### 42") != 0.0f;
    text_printf(found,
                "6 spellings of 42: %d get 1 (comparing strings: %d); another number, a word, no mark: %d "
                "of 4 get something",
                paid, spelled, wrongly);
    return decide(paid == 6 && wrongly == 0, 0);
}

static Verdict claim_lucky_guess(Text* found) {
    float reward = reward_gsm8k("No idea. Let us say 6+6=13. #### 42", "6*7=<<6*7=42>>42 #### 42");
    text_printf(found,
                "a response without a right step that ends in #### 42 gets %g; 16 guesses from 100 numbers, "
                "none twice, hit with probability %.4f",
                reward, pass_at_k(100, 1, 16));
    return decide(reward == 1.0f, 0);
}

// Follows a reward by 300 steps of exact gradient ascent; returns the chance of a right answer that this
// leads to.
static double toy_pass_after(const Toy* toy, const double* reward) {
    double theta[TOY_PARAMS], nothing[TOY_PARAMS] = {0}, logp[TOY_PARAMS], value[TOY_STATES],
                              grad[TOY_PARAMS];
    memcpy(theta, toy->theta, sizeof theta);
    toy_ascend(theta, nothing, reward, 0.0, 1.0, 0.0, 300);
    toy_log_policy(logp, theta);
    return toy_solve(value, grad, logp, toy->reward);
}

// Variance of one rollout's gradient, with the mean reward as baseline, over the square of its mean.
static double toy_relative_noise(const double* logp, const double* reward) {
    double value[TOY_STATES], grad[TOY_PARAMS], baseline[TOY_STATES],
        J = toy_solve(value, grad, logp, reward);
    for (int s = 0; s < TOY_STATES; s++) baseline[s] = J;
    double variance = toy_rollout_gradient(grad, logp, reward, baseline, 1.0, CREDIT_WHOLE);
    return variance / inner_product(grad, grad, TOY_PARAMS);
}

static int toy_digit_sum(int y) { return y / 9 + y / 3 % 3 + y % 3; }

// A reward with steps: 1 for a digit sum of 3, less by 1/3 for each that it is off.
static double toy_closeness(int y) { return 1.0 - abs(toy_digit_sum(y) - 3) / 3.0; }

static Verdict claim_finer_reward(Text* found) {
    Toy toy = toy_new(1, 1.0);
    double reward[3][TOY_PARAMS] = {{0}}, noise[3], pass[3];
    for (int y = 0; y < TOY_ANSWERS; y++) {
        reward[0][TOY_LAST + y] = toy_verify(y);
        reward[1][TOY_LAST + y] = toy_closeness(y);
        reward[2][TOY_LAST + y] = toy_digit_sum(y) / 6.0;
    }
    for (int k = 0; k < 3; k++) {
        noise[k] = toy_relative_noise(toy.logp, reward[k]);
        pass[k] = toy_pass_after(&toy, reward[k]);
    }
    text_printf(
        found,
        "digits that add up to 3. Noise over signal of one rollout's gradient: %.2f for 0/1, %.2f for "
        "closeness to 3, %.2f for the size of the sum. Right after training: %.3f, %.3f, %.3f. Calmer, on "
        "condition that it still aims at the right answer",
        noise[0], noise[1], noise[2], pass[0], pass[1], pass[2]);
    int close = noise[1] < noise[0] && pass[1] > 0.9, size = noise[2] < noise[0] && pass[2] > 0.9;
    return decide(close && size, close);
}

static Verdict claim_mean(Text* found) {
    float adv[16];
    advantages_centered(adv, sixteen_rewards, 16);
    double mean = (double)sixteen_rewards[0] - adv[0];
    text_printf(found, "reward %g minus its advantage %.4f is the mean, %.4f", sixteen_rewards[0], adv[0],
                mean);
    return compare_printed(mean, 0.1875, 4);
}

static Verdict claim_signs(Text* found) {
    float reward[16], adv[16];
    int wrong = 0;
    double largest_sum = 0.0;
    for (int c = 1; c < 16; c++) {
        double sum = 0.0;
        reward_first(reward, 16, c);
        advantages_centered(adv, reward, 16);
        for (int k = 0; k < 16; k++) wrong += reward[k] > 0.0f ? !(adv[k] > 0.0f) : !(adv[k] < 0.0f);
        for (int k = 0; k < 16; k++) sum += adv[k];
        largest_sum = fmax(largest_sum, fabs(sum));
    }
    advantages_centered(adv, sixteen_rewards, 16);
    text_printf(found,
                "here %+.4f and %+.4f; in the 15 mixed groups of 16: %d wrong signs, and the advantages of "
                "a group add up to %.2g",
                adv[0], adv[2], wrong, largest_sum < 1e-6 ? 0.0 : largest_sum);
    return decide(wrong == 0 && largest_sum < 1e-6, 0);
}

static Verdict claim_right_up(Text* found) {
    Toy toy = toy_new(1, 1.0);
    double theta[TOY_PARAMS], logp[TOY_PARAMS], value[TOY_STATES], grad[TOY_PARAMS];
    int up = 0, down = 0, right = 0;
    for (int e = 0; e < TOY_PARAMS; e++) theta[e] = toy.theta[e] + 0.1 * toy.grad[e];
    toy_log_policy(logp, theta);
    for (int y = 0; y < TOY_ANSWERS; y++) {
        double change = toy_sum_along(logp, y) - toy_sum_along(toy.logp, y);
        right += toy_verify(y) > 0.0;
        up += toy_verify(y) > 0.0 && change > 0.0;
        down += toy_verify(y) == 0.0 && change < 0.0;
    }
    double J = toy_solve(value, grad, logp, toy.reward);
    text_printf(
        found,
        "one exact step on the 27 answers: %d of %d right ones rise, %d of %d wrong ones fall. Answers "
        "share prefixes and pull each other along. Taken together the right ones rise, %.4f to %.4f",
        up, right, down, TOY_ANSWERS - right, toy.J, J);
    return decide(up == right && down == TOY_ANSWERS - right, J > toy.J);
}

// Largest |log pi - log pi_sampler| over draws from 265 logits, one per token of this vocabulary.
static double sampler_gap(SampleOptions options) {
    double filled[VOCAB_SIZE], largest = 0.0;
    float logits[VOCAB_SIZE], work[2 * VOCAB_SIZE], logp, logp_sampler;
    Rng rng = {1};
    toy_fill(filled, VOCAB_SIZE, 1, 3.0);
    for (int v = 0; v < VOCAB_SIZE; v++) logits[v] = (float)filled[v];
    for (int i = 0; i < 200; i++) {
        sample_token(&logp, &logp_sampler, logits, VOCAB_SIZE, options, &rng, work);
        largest = fmax(largest, fabs((double)logp - logp_sampler));
    }
    return largest;
}

static Verdict claim_on_policy(Text* found) {
    double plain = sampler_gap((SampleOptions){1, 1.0f, 0, 1.0f}),
           top_k = sampler_gap((SampleOptions){1, 1.0f, 50, 1.0f});
    double cool = sampler_gap((SampleOptions){1, 0.8f, 0, 1.0f});
    text_printf(found,
                "largest |log pi - log pi_sampler| in 200 draws from %d logits: temperature 1 %s, with "
                "top-k 50 (D1's setting) %.3f, temperature 0.8 %.3f. Exactly on-policy at temperature 1 "
                "without top-k",
                VOCAB_SIZE, plain < 1e-5 ? "0" : "not 0", top_k, cool);
    return decide(plain < 1e-5 && top_k < 1e-5, plain < 1e-5);
}

static Verdict claim_no_clip(Text* found) {
    const float logp[4] = {-0.5f, -1.0f, -1.5f, -2.0f}, old[4] = {-1.5f, -1.0f, -1.5f, -2.0f},
                adv[2] = {0.75f, -0.25f};
    const int mask[4] = {1, 1, 1, 1};
    float plain[4], clipped[4], drifted[4];
    double gap = 0.0;
    loss_policy_gradient(plain, logp, adv, mask, 2, 2, NORM_TOKEN_MEAN);
    loss_clip(clipped, logp, logp, adv, mask, 2, 2, 0.2f, 0.2f, NORM_TOKEN_MEAN);
    loss_clip(drifted, logp, old, adv, mask, 2, 2, 0.2f, 0.2f, NORM_TOKEN_MEAN);
    for (int i = 0; i < 4; i++) gap = fmax(gap, fabs((double)plain[i] - clipped[i]));
    text_printf(found,
                "samples of the current policy: clipped and plain gradient differ by %.2g; on a token whose "
                "ratio has drifted to e the clipped one is %g, the plain one %.4f",
                gap, fabs((double)drifted[0]), plain[0]);
    return decide(gap == 0.0 && plain[0] != 0.0f && drifted[0] == 0.0f, 0);
}

// What token mean and sequence sum give the same token: the first divided by the second, for two answers.
static double normalization_factor(int length_1, int length_2, double* spread) {
    enum { T1 = 40 };
    float logp[2 * T1], mean[2 * T1], sum[2 * T1], adv[2] = {0.5f, -0.5f};
    int mask[2 * T1];
    for (int t = 0; t < T1; t++) {
        logp[t] = logp[T1 + t] = -1.0f;
        mask[t] = t < length_1, mask[T1 + t] = t < length_2;
    }
    loss_policy_gradient(mean, logp, adv, mask, 2, T1, NORM_TOKEN_MEAN);
    loss_policy_gradient(sum, logp, adv, mask, 2, T1, NORM_SEQUENCE_SUM);
    double factor = (double)mean[0] / sum[0];
    for (int i = 0; i < 2 * T1; i++)
        if (mask[i]) *spread = fmax(*spread, fabs((double)mean[i] / sum[i] - factor));
    return factor;
}

static Verdict claim_equivalent_loss(Text* found) {
    double spread = 0.0, brief = normalization_factor(3, 1, &spread),
           lengthy = normalization_factor(30, 10, &spread);
    text_printf(found,
                "within one question every token's gradient is multiplied by one factor. It is %.3g for "
                "answers of 3 and 1 tokens, %.3g for 30 and 10: between questions, long answers count less",
                brief, lengthy);
    return decide(spread < 1e-6 && fabs(brief - lengthy) < 1e-6, spread < 1e-6);
}

// A rollout that calls the tool: the text that was forced, and the gradient that forced and sampled tokens
// get. The log-probabilities of forced tokens are NaN here: whoever read one would show it.
static Verdict claim_mask(Text* found) {
    Tokens script = {0};
    Text forced = {0};
    tokens_add(&script, PYTHON_START, 1);
    tokens_add_text(&script, "12*3", 4, 1);
    tokens_add(&script, PYTHON_END, 1);
    tokens_add_text(&script, "#### 36", 7, 1);
    Rollout* r = play_script(script.ids, script.length);
    float *dlogp = allocate((size_t)r->length, sizeof(float)), adv = 0.5f;
    int moved = 0, sampled = 0;
    for (int t = 0; t < r->length; t++) {
        r->logp[t] = r->mask[t] ? -1.0f : NAN;
        if (!r->mask[t]) decode_tokens(&forced, r->ids + t, 1, 1);
    }
    loss_policy_gradient(dlogp, r->logp, &adv, r->mask, 1, r->length, NORM_TOKEN_MEAN);
    for (int t = 0; t < r->length; t++) {
        moved += !r->mask[t] && dlogp[t] != 0.0f;
        sampled += r->mask[t] && dlogp[t] != 0.0f;
    }
    text_printf(found,
                "after 12*3 the tool inserts %s with mask 0; of its %d tokens %d get a gradient, of the %d "
                "sampled ones %d",
                forced.data ? forced.data : "nothing", r->length - script.length, moved, script.length,
                sampled);
    int as_printed = forced.data && !strcmp(forced.data, "<|output_start|>36<|output_end|>") && moved == 0 &&
                     sampled == script.length;
    text_free(&forced), tokens_free(&script), rollouts_free(r, 1), free(dlogp);
    return decide(as_printed, 0);
}

static Verdict claim_pass_meaning(Text* found) {
    double once = 0.0, sixteen = 0.0, p = 0.2;
    for (int c = 0; c <= 32; c++) {
        once += binomial(32, c, p) * pass_at_k(32, c, 1);
        sixteen += binomial(32, c, p) * pass_at_k(32, c, 16);
    }
    text_printf(found,
                "answers right with probability 0.2, expectation over 32 samples: pass@1 %.6f, pass@16 "
                "%.6f; 1-0.8^16 = %.6f",
                once, sixteen, 1.0 - pow(1.0 - p, 16));
    return decide(fabs(once - p) < 1e-12 && fabs(sixteen - (1.0 - pow(1.0 - p, 16))) < 1e-12, 0);
}

static Verdict claim_pass_rises(Text* found) {
    int falls = 0, steps = 0, level = 0;
    for (int n = 2; n <= 16; n++)
        for (int c = 0; c <= n; c++)
            for (int k = 1; k < n; k++, steps++) {
                falls += pass_at_k(n, c, k + 1) < pass_at_k(n, c, k);
                level += pass_at_k(n, c, k + 1) == pass_at_k(n, c, k);
            }
    text_printf(found,
                "3 right of 16: %.4f, %.4f, %.4f, %.4f for k = 1, 2, 4, 8. All cases up to 16 samples: %d "
                "steps from k to k+1, %d falls; %d stay level, at 0 or at 1",
                pass_at_k(16, 3, 1), pass_at_k(16, 3, 2), pass_at_k(16, 3, 4), pass_at_k(16, 3, 8), steps,
                falls, level);
    return decide(falls == 0 && pass_at_k(16, 3, 8) > pass_at_k(16, 3, 1), 0);
}

static Verdict claim_pass_not_accuracy(Text* found) {
    double rare = pass_at_k(16, 1, 16), always = pass_at_k(16, 16, 16);
    text_printf(
        found,
        "1 right of 16 and 16 right of 16 have the same pass@16, %g and %g; their pass@1 is %.4f and %g",
        rare, always, pass_at_k(16, 1, 1), pass_at_k(16, 16, 1));
    return decide(rare == always && pass_at_k(16, 1, 1) < 0.1 && pass_at_k(16, 16, 1) == 1.0, 0);
}

// ---- D2

static const char* const four_responses[4] = {"\\boxed{83}", "The correct answer is \\boxed{83}",
                                              "The final answer is 83", "We get \\boxed{38}"};

static Verdict claim_equation(Text* found) {
    double x = solve_linear("(3x-9)/2", "x+37");
    text_printf(found, "(3x-9)/2 = x+37 at x = %.10g", x);
    return compare_printed(x, 83.0, 0);
}

static Verdict claim_price(Text* found) {
    double start = 15.2 / 10.1, later = (52.0 - 15.2) / (862.6 - 10.1), vote[3];
    for (int i = 0; i < 3; i++) {
        Rng rng = {11};
        vote[i] = vote_sampled(0.45, 9, i == 0 ? 1 : i == 1 ? 4 : 16, 20000, &rng);
    }
    double early = (vote[1] - vote[0]) / 3.0, late = (vote[2] - vote[1]) / 12.0;
    text_printf(
        found,
        "%.1f times the time for %.2f times the score: %.4g points a minute at first, %.4g for each further "
        "one. A vote of our own (one answer right with 0.45): %.3f more per vote up to 4, %.3f up to 16",
        862.6 / 10.1, 52.0 / 15.2, start, later, early, late);
    return decide(later < start && late < early && late > 0.0, 0);
}

static Verdict claim_comparison(Text* found) {
    const float reward[4] = {1, 1, 0, 0}, shifted[4] = {6, 6, 5, 5};
    float adv[4], same[4];
    double gap = 0.0;
    advantages_grpo(adv, reward, 4, 1e-8f);
    advantages_grpo(same, shifted, 4, 1e-8f);
    for (int k = 0; k < 4; k++) gap = fmax(gap, fabs((double)adv[k] - same[k]));
    double exact = expected_gradient(0.3, 8, RULE_RLOO) / (0.3 * (1.0 - 0.3));
    text_printf(found,
                "5 more for every answer changes GRPO's advantages by %.2g: only the comparison counts. "
                "Without a value model, RLOO's expected gradient is %.6f times the true one",
                gap, exact);
    return decide(gap < 1e-6 && fabs(exact - 1.0) < 1e-6, 0);
}

// Scores of four answers from nothing but the odds with which each beats each, by descent on
// loss_reward_model.
static Verdict claim_pairs(Text* found) {
    const double truth[4] = {2.0, 1.0, 0.5, -1.0};
    double score[4] = {0}, gap = 0.0;
    for (int step = 0; step < 1000; step++) {
        double grad[4] = {0};
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) {
                float chosen, rejected;
                if (i == j) continue;
                loss_reward_model(&chosen, &rejected, (float)score[i], (float)score[j]);
                grad[i] += sigmoid(truth[i] - truth[j]) * chosen;
                grad[j] += sigmoid(truth[i] - truth[j]) * rejected;
            }
        for (int i = 0; i < 4; i++) score[i] -= 0.5 * grad[i];
    }
    for (int i = 1; i < 4; i++) gap = fmax(gap, fabs((score[0] - score[i]) - (truth[0] - truth[i])));
    text_printf(
        found,
        "four answers, differences of score 1, 0.5, 1.5; learned from pairs alone: %.4f, %.4f, %.4f. (The "
        "level stays free: only differences are learned)",
        score[0] - score[1], score[1] - score[2], score[2] - score[3]);
    return decide(gap < 1e-4, 0);
}

static Verdict claim_four(Text* found) {
    const float claimed[4] = {1, 1, 0, 0};
    int same = 0;
    text_printf(found, "rewards");
    for (int i = 0; i < 4; i++) {
        float reward = reward_boxed(four_responses[i], "83");
        same += reward == claimed[i];
        text_printf(found, "%s%g", i ? ", " : " [", reward);
    }
    text_printf(found, "]");
    return decide(same == 4, 0);
}

static Verdict claim_r3(Text* found) {
    char answer[64];
    float strict = reward_boxed(four_responses[2], "83");
    extract_lenient(four_responses[2], answer, sizeof answer);
    int fallback = answers_equal(answer, "83");
    text_printf(found, "r3 without a fallback: %g; with one (the last number, %s): %d", strict, answer,
                fallback);
    return decide(strict == 0.0f && fallback == 1, 0);
}

static Verdict claim_format_inside(Text* found) {
    const char* const cases[] = {"\\boxed{83}", "83", "\\boxed{38}", "38"};
    float reward[4];
    for (int i = 0; i < 4; i++) reward[i] = reward_boxed(cases[i], "83");
    text_printf(found, "right and boxed %g, right only %g, boxed only %g, neither %g", reward[0], reward[1],
                reward[2], reward[3]);
    return decide(reward[0] == 1.0f && reward[1] == 0.0f && reward[2] == 0.0f && reward[3] == 0.0f, 0);
}

static Verdict claim_split(Text* found) {
    Problem train[] = {{"Tom has 3 pens.", ""}, {"How far is it?", ""}},
            exam[] = {{"tom has 3 pens", ""}, {"Why?", ""}, {"When?", ""}};
    const Problems a = {.list = train, .count = 2}, b = {.list = exam, .count = 3};
    int all = 12500, held_out = 500, shared = count_overlap(&a, &b, SAME_WORDS);
    text_printf(
        found,
        "%d - %d = %d, the exam is %.1f%% of all. Kept apart is something to check: of 3 exam questions "
        "with one leaked, respelled, count_overlap finds %d",
        all, held_out, all - held_out, 100.0 * held_out / all, shared);
    Verdict sum = compare_printed(all - held_out, 12000.0, 0);
    return shared == 1 ? sum : DOES_NOT_HOLD;
}

static Verdict claim_near_miss(Text* found) {
    float near = reward_boxed("\\boxed{83.01}", "83"), far = reward_boxed("\\boxed{a banana}", "83");
    text_printf(found, "83.01 gets %g, \"a banana\" gets %g", near, far);
    return decide(near == far && reward_boxed("\\boxed{83}", "83") != near, 0);
}

// ---- D3, sections 0 to 4

static Verdict claim_no_dynamics(Text* found) {
    const Trajectory tau = {
        4, {2, 3, 2, 3, 4}, {CHAIN_RIGHT, CHAIN_RIGHT, CHAIN_RIGHT, CHAIN_RIGHT}, {0, 0, 0, 1}};
    const double slips[3] = {1.0 / 6.0, 0.3, 0.01}, h = 1e-5;
    double theta[CHAIN_STATES] = {1, 1, 1, 1, 1}, score[CHAIN_STATES], logp[3], gap = 0.0, a, b;
    ChainPolicy pi = chain_policy_from(theta);
    score_trajectory(score, &tau, &pi);
    for (int i = 0; i < 3; i++) {
        logp[i] = trajectory_logprob(&a, &b, &tau, &pi, slips[i]);
        for (int s = 1; s < CHAIN_GOAL; s++) {
            double side[2];
            for (int up = 0; up < 2; up++) {
                double moved[CHAIN_STATES];
                memcpy(moved, theta, sizeof moved);
                moved[s] += up ? h : -h;
                ChainPolicy pi_moved = chain_policy_from(moved);
                side[up] = trajectory_logprob(&a, &b, &tau, &pi_moved, slips[i]);
            }
            gap = fmax(gap, fabs((side[1] - side[0]) / (2 * h) - score[s]));
        }
    }
    text_printf(
        found,
        "log p(tau) in three worlds: %.3f, %.3f, %.3f; its gradient is (%.4f, %.4f, %.4f) in all three, off "
        "by %s",
        logp[0], logp[1], logp[2], score[1], score[2], score[3], gap < 1e-8 ? "< 1e-08" : "more");
    return decide(gap < 1e-8 && fabs(logp[0] - logp[2]) > 0.1, 0);
}

static Verdict claim_discount_converges(Text* found) {
    enum { LONG = 10000 };
    double* ones = allocate(LONG, sizeof(double));
    for (int t = 0; t < LONG; t++) ones[t] = 1.0;
    double a = discounted_return(ones, LONG / 10, 0.99), b = discounted_return(ones, LONG, 0.99);
    double c = discounted_return(ones, LONG / 10, 1.0), d = discounted_return(ones, LONG, 1.0);
    free(ones);
    text_printf(
        found,
        "1 on every step, %d and %d steps: %.3f and %.3f with gamma 0.99 (limit 1/(1-gamma) = 100), %g and "
        "%g with gamma 1",
        LONG / 10, LONG, a, b, c, d);
    return decide(fabs(b - 100.0) < 1e-9 && d == 10.0 * c, 0);
}

static Verdict claim_relative(Text* found) {
    double V[2][CHAIN_STATES], Q[2][CHAIN_STATES][2], worst = 0.0;
    const double right[2] = {0.5, 0.75};
    for (int i = 0; i < 2; i++) {
        ChainPolicy pi = {{right[i], right[i], right[i], right[i], right[i]}};
        solve_chain(V[i], Q[i], &pi, 1.0 / 6.0, 1.0);
        for (int s = 1; s < CHAIN_GOAL; s++)
            worst = fmax(worst,
                         fabs((1.0 - right[i]) * (Q[i][s][0] - V[i][s]) + right[i] * (Q[i][s][1] - V[i][s])));
    }
    text_printf(
        found,
        "middle of the chain, pi(right) 0.5 and 0.75: V %.4f and %.4f, Q(right) %.4f and %.4f, A(right) "
        "%+.4f and %+.4f; the mean of A under pi is %s",
        V[0][2], V[1][2], Q[0][2][1], Q[1][2][1], Q[0][2][1] - V[0][2], Q[1][2][1] - V[1][2],
        worst < 1e-12 ? "0" : "not 0");
    return decide(worst < 1e-12 && fabs(V[0][2] - V[1][2]) > 0.1 && fabs(Q[0][2][1] - Q[1][2][1]) > 0.1, 0);
}

static Verdict claim_thermostat(Text* found) {
    double w[2], share[CURVE_COLUMNS], day[THERMOSTAT_STEPS];
    const double nothing[2] = {0.0, 0.0};
    Rng rng = {1};
    double before = test_thermostat(day, nothing, 100, &rng);
    train_thermostat(w, share, 1, &thermostat_defaults);
    double after = test_thermostat(day, w, 100, &rng);
    text_printf(
        found,
        "within 2 F of 70 F: %.0f%% of the time before, %.0f%% after %d updates; pi(on) falls with the "
        "temperature: %s",
        100.0 * before, 100.0 * after, thermostat_defaults.updates, w[1] < 0.0 ? "yes" : "no");
    return decide(before < 0.2 && after > 0.95 && w[1] < 0.0, 0);
}

static Verdict claim_product(Text* found) {
    Toy toy = toy_new(1, 1.0);
    double total = 0.0, right = 0.0;
    for (int y = 0; y < TOY_ANSWERS; y++) {
        total += exp(toy_sum_along(toy.logp, y));
        right += exp(toy_sum_along(toy.logp, y)) * toy_verify(y);
    }
    text_printf(
        found,
        "products over all %d answers of the small model add up to %.12f, over the right ones to %.12f; "
        "Bellman, step by step, says %.12f",
        TOY_ANSWERS, total, right, toy.J);
    return decide(fabs(total - 1.0) < 1e-12 && fabs(right - toy.J) < 1e-12, 0);
}

static Verdict claim_underflow(Text* found) {
    enum { T1 = 4000 };
    float* logp = allocate(T1, sizeof(float));
    int* mask = allocate(T1, sizeof(int));
    float sum;
    double product = 1.0;
    int gone = 0;
    for (int t = 0; t < T1; t++) {
        logp[t] = (float)log(0.5), mask[t] = 1;
        product *= 0.5;
        if (product == 0.0 && !gone) gone = t + 1;
    }
    sequence_logprobs(&sum, logp, mask, 1, T1);
    free(logp), free(mask);
    text_printf(
        found,
        "%d tokens of probability 1/2: the product is exactly 0 from token %d on, in double; the sum of "
        "logs is %.1f nats",
        T1, gone, sum);
    return decide(product == 0.0 && fabs(sum - T1 * log(0.5)) < 0.01, 0);
}

// The hand-made example of chapter 3: log pi("4 <end>" | "2 + 2 ="), rightly and after one slip.
static void example_sums(float* right, float* no_shift, float* everything, float* late_mask) {
    const int all[EXAMPLE_T] = {1, 1, 1, 1, 1, 1};
    int late_ids[EXAMPLE_T + 1] = {0}, shifted[EXAMPLE_T - 1];
    float logp[EXAMPLE_T - 1], unshifted[EXAMPLE_T];
    memcpy(late_ids + 1, example_ids, sizeof example_ids); // undoes the shift of token_logprobs
    token_logprobs(logp, example_logits, example_ids, 1, EXAMPLE_T, EXAMPLE_V);
    token_logprobs(unshifted, example_logits, late_ids, 1, EXAMPLE_T + 1, EXAMPLE_V);
    shift_mask(shifted, example_mask, 1, EXAMPLE_T);
    sequence_logprobs(right, logp, shifted, 1, EXAMPLE_T - 1);
    sequence_logprobs(no_shift, unshifted, example_mask, 1, EXAMPLE_T);
    sequence_logprobs(everything, logp, all, 1, EXAMPLE_T - 1);
    sequence_logprobs(late_mask, logp, example_mask, 1, EXAMPLE_T - 1);
}

static Verdict claim_shift(Text* found) {
    float right, no_shift, everything, late_mask;
    example_sums(&right, &no_shift, &everything, &late_mask);
    double hand = (3.0 - log(exp(1.0) + exp(3.0) + 3.0)) + (2.0 - log(4.0 + exp(2.0)));
    text_printf(
        found,
        "\"4 <end>\" after \"2 + 2 =\": %.4f nats (by hand %.4f); ids not shifted %.4f, mask not shifted "
        "%.4f",
        right, hand, no_shift, late_mask);
    return decide(fabs(right - hand) < 1e-5 && fabs(no_shift - right) > 0.1 && fabs(late_mask - right) > 0.1,
                  0);
}

static Verdict claim_size(Text* found) {
    double digits = 4000.0 * log10(128000.0);
    text_printf(found, "128000^4000 = 10^%.1f; in bits %.0f chosen for 1 paid", digits,
                4000.0 * log2(128000.0));
    return decide(digits > 80.0, 0); // 10^80: the atoms of the visible universe
}

static Verdict claim_bandit(Text* found) {
    Toy toy = toy_new(1, 1.0);
    double grad[TOY_PARAMS], weight[TOY_ANSWERS];
    char text[16];
    for (int y = 0; y < TOY_ANSWERS; y++) weight[y] = exp(toy_sum_along(toy.logp, y)) * toy_verify(y);
    toy_answer_gradient(grad, toy.logp, weight);
    double gap = toy_largest_difference(grad, toy.grad, TOY_PARAMS);
    toy_rollout_gradient(grad, toy.logp, toy.reward, NULL, 1.0, CREDIT_TO_GO);
    gap = fmax(gap, toy_largest_difference(grad, toy.grad, TOY_PARAMS));
    text_printf(found,
                "27 answers, gamma 1: Bellman's gradient, the sum over whole answers and the sum over "
                "tokens differ by %s (their variances may differ)",
                toy_difference_text(text, gap, 1e-12));
    return decide(gap < 1e-12, 0);
}

static Verdict claim_point_six_percent(Text* found) {
    double late[501] = {0}, credit;
    late[500] = 1.0;
    credit = 100.0 * discounted_return(late, 501, 0.99);
    text_printf(
        found,
        "0.99^500 = %.3f%% (500 tokens have 499 steps between them: %.3f%%). Cut to one decimal it is "
        "%.1f%%, rounded %.1f%%",
        credit, credit / 0.99, floor(10.0 * credit) / 10.0, credit);
    return compare_printed(credit, 0.6, 1);
}

static Verdict claim_discount_bias(Text* found) {
    Toy toy = toy_new(1, 1.0);
    double grad[TOY_PARAMS], angle[3];
    const double gammas[3] = {1.0, 0.99, 0.9};
    for (int i = 0; i < 3; i++) {
        toy_rollout_gradient(grad, toy.logp, toy.reward, NULL, gammas[i], CREDIT_TO_GO);
        angle[i] = toy_angle(grad, toy.grad, TOY_PARAMS);
        if (angle[i] < 1e-9) angle[i] = 0.0;
    }
    text_printf(found,
                "the expected gradient of three-token answers turns away from the true one by %.3f, %.3f "
                "and %.3f degrees for gamma 1, 0.99, 0.9",
                angle[0], angle[1], angle[2]);
    return decide(angle[0] == 0.0 && angle[1] > 1e-3 && angle[2] > angle[1], 0);
}

static Verdict claim_grpo_std(Text* found) {
    const float reward[4] = {1, 1, 0, 0};
    float adv[4];
    double square = 0.0;
    advantages_grpo(adv, reward, 4, 1e-8f);
    for (int k = 0; k < 4; k++) square += (double)adv[k] * adv[k];
    text_printf(
        found,
        "[1,1,0,0] becomes %+.4f, %+.4f. Their std is %.4f when the squares are divided by K-1, as torch "
        "does, and %.4f when by K",
        adv[0], adv[3], sqrt(square / 3), sqrt(square / 4));
    return decide(fabs(sqrt(square / 4) - 1.0) < 1e-6 && fabs(sqrt(square / 3) - 1.0) < 1e-6,
                  fabs(sqrt(square / 3) - 1.0) < 1e-6);
}

static Verdict claim_rloo(Text* found) {
    float centered[16], rloo[16];
    double gap = 0.0, p = 0.3, truth = p * (1.0 - p);
    advantages_centered(centered, sixteen_rewards, 16);
    advantages_rloo(rloo, sixteen_rewards, 16);
    for (int k = 0; k < 16; k++) {
        double others = 0.0; // leave-one-out, from its definition
        for (int i = 0; i < 16; i++) others += i == k ? 0.0 : sixteen_rewards[i] / 15.0;
        gap = fmax(gap, fabs(rloo[k] - (sixteen_rewards[k] - others)));
        gap = fmax(gap, fabs(rloo[k] - 16.0 / 15.0 * centered[k]));
    }
    double exact = expected_gradient(p, 8, RULE_RLOO) / truth,
           shrunk = expected_gradient(p, 8, RULE_CENTERED) / truth;
    text_printf(
        found,
        "reward minus the mean of the others is 16/15 of centered for all 16: %s. Expected gradient over "
        "the true one, K = 8: RLOO %.4f, centered %.4f",
        gap < 1e-6 ? "yes" : "no", exact, shrunk);
    return decide(gap < 1e-6 && fabs(exact - 1.0) < 1e-6 && fabs(shrunk - 7.0 / 8.0) < 1e-6, 0);
}

// The variance of one rollout's gradient minus the mean reward or minus V(prefix), for 18 policies.
static Verdict claim_value_function(Text* found) {
    double by_mean[2] = {INFINITY, 0.0}, by_value[2] = {INFINITY, 0.0}, mean[TOY_STATES], grad[TOY_PARAMS];
    for (int i = 0; i < 18; i++) {
        Toy toy = toy_new(1 + i / 3, 1.0 + i % 3);
        for (int s = 0; s < TOY_STATES; s++) mean[s] = toy.J;
        double none = toy_rollout_gradient(grad, toy.logp, toy.reward, NULL, 1.0, CREDIT_TO_GO);
        double first = toy_rollout_gradient(grad, toy.logp, toy.reward, mean, 1.0, CREDIT_TO_GO) / none;
        double second =
            toy_rollout_gradient(grad, toy.logp, toy.reward, toy.value, 1.0, CREDIT_TO_GO) / none / first;
        by_mean[0] = fmin(by_mean[0], first), by_mean[1] = fmax(by_mean[1], first);
        by_value[0] = fmin(by_value[0], second), by_value[1] = fmax(by_value[1], second);
    }
    text_printf(
        found,
        "18 policies over 27 answers. Subtracting the mean leaves %.2f to %.2f of the gradient's variance; "
        "V of the prefix instead, exact here, %.2f to %.2f times that",
        by_mean[0], by_mean[1], by_value[0], by_value[1]);
    return decide(by_mean[1] < 0.9 && by_value[0] > 0.9, 0);
}

static Verdict claim_cartpole(Text* found) {
    int solved[BASELINES];
    for (int b = 0; b < BASELINES; b++) {
        CartPoleOptions options = cartpole_defaults;
        options.baseline = b;
        solved[b] = summarize_seeds(1, &options).solved;
    }
    text_printf(found,
                "of %d seeds with %d steps each, the group mean solves %d, a value function %d. What a "
                "value function saves is steps: ./rl cartpole counts them",
                CARTPOLE_SEEDS, cartpole_defaults.budget, solved[BASELINE_GROUP_MEAN],
                solved[BASELINE_VALUE]);
    return decide(2 * solved[BASELINE_GROUP_MEAN] < CARTPOLE_SEEDS, 0);
}

// ---- D3, section 5: KL

// A judge with a hole: it pays 2 for the wrong answer "222". What the judge and the truth say of the best
// policy.
static Verdict claim_hole(Text* found) {
    const double betas[] = {4.0, 0.5, 0.25, 0.1};
    Toy ref = toy_new(2, 1.0);
    double p[TOY_ANSWERS], judged[4] = {0}, right[4] = {0};
    ref.reward[TOY_PARAMS - 1] = 2.0;
    text_printf(
        found,
        "a judge pays 2 for one wrong answer. At the optimum, what the judge gives and the share of right "
        "answers:");
    for (int i = 0; i < 4; i++) {
        toy_optimum(p, ref.logp, ref.reward, betas[i]);
        for (int y = 0; y < TOY_ANSWERS; y++) {
            judged[i] += p[y] * toy_sum_along(ref.reward, y);
            right[i] += p[y] * toy_verify(y);
        }
        text_printf(found, "%s beta %g: %.3f, %.3f", i ? ";" : "", betas[i], judged[i], right[i]);
    }
    int exploited =
        judged[3] > judged[2] && judged[2] > judged[1] && right[3] < right[2] && right[2] < right[1];
    return decide(exploited && right[3] < 0.01 && right[1] > right[0], 0);
}

static double kl_between_drifts(double from, double to) { // KL of the five-way policy at two drifts
    double p[5], q[5], reference[5];
    five_way(p, reference, from);
    five_way(q, reference, to);
    return exact_kl(p, q, 5);
}

static Verdict claim_kl_properties(Text* found) {
    double there = kl_between_drifts(1, 0), back = kl_between_drifts(0, 1), far = kl_between_drifts(2, 0);
    double detour = kl_between_drifts(2, 1) + there, least = INFINITY, same = 0.0;
    for (double drift = -3.0; drift <= 3.0; drift += 0.5) {
        if (drift != 0.0) least = fmin(least, kl_between_drifts(drift, 0));
        same = fmax(same, fabs(kl_between_drifts(drift, drift)));
    }
    text_printf(
        found,
        "KL(P||Q) %.4f, KL(Q||P) %.4f; of a distribution with itself %.2g, least of 12 others %.4f; direct "
        "%.4f, by way of a third %.4f: longer than its detour",
        there, back, same, least, far, detour);
    return decide(fabs(there - back) > 0.01 && same == 0.0 && least > 0.0 && far > detour, 0);
}

static Verdict claim_k1(Text* found) {
    double logp[5], logp_ref[5], variance, negative, variance_3, none;
    five_way(logp, logp_ref, 1.0);
    double exact = exact_kl(logp, logp_ref, 5),
           mean = kl_moments(&variance, &negative, logp, logp_ref, 5, 1.0, 1);
    kl_moments(&variance_3, &none, logp, logp_ref, 5, 1.0, 3);
    text_printf(
        found,
        "five answers, exact KL %.4f: log(pi/pi_ref) averages %.4f, with variance %.4f (k3: %.4f), and is "
        "negative for %.0f%% of the samples",
        exact, mean, variance, variance_3, 100.0 * negative);
    return decide(fabs(mean - exact) < 1e-12 && variance > 2.0 * variance_3 && negative > 0.0, 0);
}

// A line of code as D3 prints it (sign -1) and with the sign that fits samples from the policy.
static Verdict claim_printed_estimator(Text* found, int estimator) {
    double logp[5], logp_ref[5], v, n;
    five_way(logp, logp_ref, 1.0);
    double exact = exact_kl(logp, logp_ref, 5),
           printed = kl_moments(&v, &n, logp, logp_ref, 5, -1.0, estimator);
    text_printf(
        found,
        "samples from pi, exact KL %.4f: as printed it averages %.4f, with log_ratio = log pi_ref - log pi "
        "it averages %.4f",
        exact, printed, kl_moments(&v, &n, logp, logp_ref, 5, 1.0, estimator));
    return decide(fabs(printed - exact) < 1e-9, 0);
}

static double kl_use_error(const char* use, double drift) { // |gradient - exact| / |exact|, five answers
    double logp[5], logp_ref[5], exact[5], other[5], weight[5], grad[5];
    int row = 0;
    while (row < KL_USES - 1 && strcmp(kl_uses[row].name, use)) row++;
    five_way(logp, logp_ref, drift);
    exact_kl_gradient(exact, other, logp, logp_ref, 5);
    for (int i = 0; i < 5; i++) weight[i] = kl_score_weight(logp[i] - logp_ref[i], row);
    softmax_score_sum(grad, logp, weight, 5);
    return toy_relative_error(grad, exact, 5);
}

static Verdict claim_printed_k1(Text* found) {
    Verdict verdict = claim_printed_estimator(found, 1);
    text_printf(
        found,
        ". As a penalty the printed line pays for drift (its gradient is off by %.2f times the exact one)",
        kl_use_error("D3 k1, reward", 1.0));
    return verdict;
}

static Verdict claim_printed_k3(Text* found) {
    Verdict verdict = claim_printed_estimator(found, 3);
    double logp[5], logp_ref[5], v, n;
    five_way(logp, logp_ref, 1.0);
    text_printf(found, ". As printed it fits samples from pi_ref: %.4f, and KL(pi_ref||pi) is %.4f",
                kl_moments(&v, &n, logp_ref, logp, 5, 1.0, 3), exact_kl(logp_ref, logp, 5));
    return verdict;
}

// Variance of k1 over that of k3, with the sign that fits samples from the policy; or over samples from
// pi_ref.
static double variance_ratio(double drift, int from_ref) {
    double logp[5], logp_ref[5], v1, v3, n;
    five_way(logp, logp_ref, drift);
    kl_moments(&v1, &n, from_ref ? logp_ref : logp, from_ref ? logp : logp_ref, 5, 1.0, 1);
    kl_moments(&v3, &n, from_ref ? logp_ref : logp, from_ref ? logp : logp_ref, 5, 1.0, 3);
    return v1 / v3;
}

static Verdict claim_k3_variance(Text* found) {
    double half = variance_ratio(0.5, 0), one = variance_ratio(1.0, 0), three = variance_ratio(3.0, 0);
    text_printf(
        found,
        "k3 with the right sign: the variance of k1 is %.3g times that of k3 at drift 0.5, %.3g times at 1, "
        "%.2g times at 3. For moderate drift, yes; far away k3 is the wilder one",
        half, one, three);
    return decide(half > 1.0 && one > 1.0 && three > 1.0, half > 1.0 && one > 1.0);
}

static Verdict claim_k3_positive(Text* found) {
    enum { N = 1601 };
    float *logp = allocate(N, sizeof(float)), *logp_ref = allocate(N, sizeof(float)),
          *kl = allocate(N, sizeof(float));
    float least = INFINITY, at_zero = NAN;
    for (int i = 0; i < N; i++) logp[i] = (float)(i - 800) / 10.0f; // log-ratios from -80 to 80: either sign
    kl_k3(kl, logp, logp_ref, N);
    for (int i = 0; i < N; i++) {
        if (logp[i] == 0.0f) at_zero = kl[i];
        else if (!(kl[i] >= least)) least = kl[i]; // a NaN ends up here and stays
    }
    text_printf(found, "%d log-ratios from -80 to 80: k3 is %g at 0 and at least %.3g elsewhere", N, at_zero,
                least);
    free(logp), free(logp_ref), free(kl);
    return decide(at_zero == 0.0f && least > 0.0f, 0);
}

static Verdict claim_kl_in_reward(Text* found) {
    double with_k1 = fmax(kl_use_error("k1 in the reward", 1.0), kl_use_error("k1 in the reward", 0.1));
    double near = kl_use_error("k3 in the reward", 0.1), away = kl_use_error("k3 in the reward", 1.0);
    text_printf(found,
                "relative error of the expected gradient: k1 in the reward %s; k3 in the reward, which D3 "
                "recommends, %.2f at drift 0.1 and %.2f at 1. Only with k1",
                with_k1 < 1e-9 ? "0" : "not 0", near, away);
    return decide(with_k1 < 1e-9 && near < 1e-9 && away < 1e-9, with_k1 < 1e-9);
}

static Verdict claim_sum_or_mean(Text* found) {
    enum { LONGEST = 100 };
    float logp[LONGEST], logp_ref[LONGEST], dlogp[LONGEST];
    int mask[LONGEST];
    double ratio[3];
    const int lengths[3] = {1, 10, 100};
    for (int t = 0; t < LONGEST; t++) logp[t] = -1.0f, logp_ref[t] = -1.3f, mask[t] = 1;
    for (int i = 0; i < 3; i++)
        ratio[i] = loss_kl(dlogp, logp, logp_ref, mask, 1, lengths[i], NORM_SEQUENCE_SUM, 1) /
                   loss_kl(dlogp, logp, logp_ref, mask, 1, lengths[i], NORM_SEQUENCE_MEAN, 1);
    text_printf(
        found,
        "the formula has the log-ratio of the answer, the sum. For answers of 1, 10, 100 tokens the sum is "
        "%.4g, %.4g, %.4g times the mean: no single beta makes up for it, long answers drift almost for free",
        ratio[0], ratio[1], ratio[2]);
    int equal = 1, constant = 1;
    for (int i = 0; i < 3; i++) {
        equal &= fabs(ratio[i] - 1.0) < 1e-6;
        constant &= fabs(ratio[i] - ratio[0]) < 1e-6;
    }
    return decide(equal, constant);
}

// ---- D3, sections 6 to 8, and the experiments

static Verdict claim_no_negative(Text* found) {
    const float logp[4] = {-9.0f, -0.5f, -1.0f, -1.5f}, blame = -1.0f;
    const int mask[4] = {0, 1, 1, 1};
    float sft[4], policy[4];
    int pushed_down = 0, blamed = 0;
    loss_sft(sft, logp, mask, 1, 4);
    loss_policy_gradient(policy, logp, &blame, mask, 1, 4, NORM_TOKEN_MEAN);
    for (int t = 0; t < 4; t++) pushed_down += sft[t] > 0.0f, blamed += policy[t] > 0.0f;
    text_printf(found,
                "tokens of an answer that the loss pushes down: SFT %d of 3, policy gradient with a "
                "negative advantage %d of 3",
                pushed_down, blamed);
    return decide(pushed_down == 0 && blamed == 3, 0);
}

static Verdict claim_same_form(Text* found) {
    double gap = 0.0;
    int pairs = 0;
    for (int i = -4; i <= 4; i++)
        for (int j = -4; j <= 4; j++, pairs++) {
            float chosen = -12.0f + i, rejected = -15.0f + j, a, b, c, d, beta = 0.5f;
            double dpo = loss_dpo(&a, &b, chosen, rejected, -12.0f, -15.0f, beta);
            double model = loss_reward_model(&c, &d, beta * i, beta * j);
            gap = fmax(gap, fmax(fabs(dpo - model), fabs((double)a - beta * c)));
        }
    text_printf(found,
                "%d pairs: the DPO loss differs from the reward model's loss on beta log(pi/pi_ref) by %.2g",
                pairs, gap < 1e-7 ? 0.0 : gap);
    return decide(gap < 1e-7, 0);
}

// How far from pi_ref exp(r/beta)/Z does training with the DPO loss end?
static double toy_dpo_distance(const double* logp_ref, const double* theta, double beta) {
    double trained[TOY_PARAMS], logp[TOY_PARAMS], verdict[TOY_ANSWERS], reward[TOY_PARAMS], p[TOY_ANSWERS],
        best[TOY_ANSWERS];
    memcpy(trained, theta, sizeof trained);
    toy_rewards(reward);
    for (int y = 0; y < TOY_ANSWERS; y++) verdict[y] = toy_verify(y);
    toy_train_dpo(trained, logp_ref, verdict, beta, 400);
    toy_log_policy(logp, trained);
    toy_probabilities(p, logp);
    toy_optimum(best, logp_ref, reward, beta);
    return toy_largest_difference(p, best, TOY_ANSWERS);
}

static Verdict claim_dpo_optimum(Text* found) {
    Toy ref = toy_new(2, 1.0);
    double one = toy_dpo_distance(ref.logp, ref.theta, 1.0),
           tenth = toy_dpo_distance(ref.logp, ref.theta, 0.1);
    char a[16], b[16];
    text_printf(
        found,
        "trained on preferences between 27 answers, largest distance from pi_ref exp(r/beta)/Z: %s at beta "
        "1, %s at 0.1",
        toy_difference_text(a, one, 1e-6), toy_difference_text(b, tenth, 1e-6));
    return decide(one < 1e-6 && tenth < 1e-6, 0);
}

// The distance of best-of-N from the nearest KL-regularized optimum, over all beta (a fine grid).
static double best_of_n_distance(const double* logp_ref, const double* entry_reward, int N) {
    double reward[TOY_ANSWERS], p_ref[TOY_ANSWERS], p[TOY_ANSWERS], best[TOY_ANSWERS], least = 1.0, at = 0.0;
    toy_probabilities(p_ref, logp_ref);
    for (int y = 0; y < TOY_ANSWERS; y++) reward[y] = entry_reward[TOY_LAST + y];
    toy_best_of_n(p, p_ref, reward, N);
    for (double step = 0.1, low = log(0.02), high = log(20.0); step > 1e-12; step *= 0.1) {
        for (double x = low; x <= high; x += step) {
            toy_optimum(best, logp_ref, entry_reward, exp(x));
            double distance = toy_largest_difference(p, best, TOY_ANSWERS);
            if (distance < least) least = distance, at = x;
        }
        low = at - step, high = at + step; // look closer around the best one
    }
    return least;
}

static Verdict claim_three_routes(Text* found) {
    Toy ref = toy_new(2, 1.0);
    double theta[TOY_PARAMS], logp[TOY_PARAMS], graded[TOY_PARAMS] = {0}, p[TOY_ANSWERS], best[TOY_ANSWERS],
                                                beta = 0.5;
    memcpy(theta, ref.theta, sizeof theta);
    for (int y = 0; y < TOY_ANSWERS; y++) graded[TOY_LAST + y] = toy_closeness(y);
    toy_ascend(theta, ref.logp, ref.reward, beta, 2.0 / (0.3 + beta), 1e-10, 50000);
    toy_log_policy(logp, theta);
    toy_probabilities(p, logp);
    toy_optimum(best, ref.logp, ref.reward, beta);
    double rl = toy_largest_difference(p, best, TOY_ANSWERS),
           dpo = toy_dpo_distance(ref.logp, ref.theta, beta);
    double two = best_of_n_distance(ref.logp, ref.reward, 4), more = best_of_n_distance(ref.logp, graded, 4);
    text_printf(
        found,
        "distance from the optimum: RL %s, DPO %s. Best of 4 from the nearest optimum of any beta: %s for a "
        "0/1 reward, %.4f for a graded one. The three meet when the reward has two values",
        rl < 1e-6 ? "0" : "not 0", dpo < 1e-6 ? "0" : "not 0", two < 1e-6 ? "0" : "not 0", more);
    int meet = rl < 1e-6 && dpo < 1e-6 && two < 1e-6;
    return decide(meet && more < 1e-6, meet);
}

static Verdict claim_cheating(Text* found) {
    const char* const cheats[] = {"\\boxed{}", "\\boxed{38}", "\\boxed{38, 83}", "\\boxed{83",
                                  "\\boxed{the answer}"};
    int strict = 0, format = 0;
    for (int i = 0; i < 5; i++) {
        strict += reward_boxed(cheats[i], "83") != 0.0f;
        format += reward_format(cheats[i], "83") != 0.0f;
    }
    float guess = reward_boxed("Perhaps 9*9 = 83? \\boxed{83}", "83");
    text_printf(
        found,
        "of 5 empty or wrong answers the verifier pays %d, one that only looks for a box pays %d, and a "
        "lucky guess gets %g. As hard to cheat as the verifier is correct",
        strict, format, guess);
    return decide(strict == 0 && format == 0 && guess == 0.0f, strict == 0);
}

// Equal gains per doubling of the number of samples? One question (p = 1/4), and twelve with p = 1/2, 1/4,
// 1/8 ...
static Verdict claim_log_linear(Text* found) {
    enum { N = 4096, DOUBLINGS = 4 };
    double gain[2][DOUBLINGS], spread[2];
    for (int many = 0; many <= 1; many++) {
        double last = 0.0, low = 1.0, high = 0.0;
        for (int d = 0; d <= DOUBLINGS; d++) {
            double score = 0.0;
            for (int j = 1; j <= 12; j++) score += pass_at_k(N, many ? N >> j : N / 4, 4 << d) / 12.0;
            if (d) gain[many][d - 1] = score - last;
            last = score;
        }
        for (int d = 0; d < DOUBLINGS; d++) low = fmin(low, gain[many][d]), high = fmax(high, gain[many][d]);
        spread[many] = high / low;
    }
    text_printf(
        found,
        "pass@k, gain of each doubling from k = 4 to 64: %.3f, %.3f, %.3f, %.3f over questions of every "
        "difficulty; %.3f, %.3f, %.3f, %.3f on one question. Across a wide mix, yes",
        gain[1][0], gain[1][1], gain[1][2], gain[1][3], gain[0][0], gain[0][1], gain[0][2], gain[0][3]);
    return decide(spread[0] < 1.2 && spread[1] < 1.2, spread[1] < 1.2);
}

// The first number of a text such as "about 1M examples" or "100k+ samples"; 0 when there is none.
static double read_size(const char* text) {
    char* end;
    while (*text && !is_digit(*text)) text++;
    double size = strtod(text, &end);
    return *end == 'k' ? size * 1e3 : *end == 'M' ? size * 1e6 : size;
}

static Verdict claim_two_orders(Text* found) {
    double size[3] = {0};
    for (size_t i = 0; i + 2 < sizeof recipe_stages / sizeof *recipe_stages; i++)
        if (!strncmp(recipe_stages[i].recipe, "Tulu", 4))
            for (int s = 0; s < 3; s++) size[s] = read_size(recipe_stages[i + s].size);
    text_printf(found, "sizes %.0f, %.0f, %.0f: stage 3 is smaller by %.1f and %.1f powers of ten", size[0],
                size[1], size[2], log10(size[0] / size[2]), log10(size[1] / size[2]));
    Verdict first = compare_printed(log10(size[0] / size[2]), 2.0, 0);
    return first == compare_printed(log10(size[1] / size[2]), 2.0, 0) ? first : DOES_NOT_HOLD;
}

static Verdict claim_prompt_in_sum(Text* found) {
    float right, no_shift, everything, late_mask;
    example_sums(&right, &no_shift, &everything, &late_mask);
    text_printf(found, "\"4 <end>\" after \"2 + 2 =\": %.4f nats; with the prompt's tokens in the sum %.4f",
                right, everything);
    return decide(everything < right - 1.0, 0);
}

// DPO without a reference is DPO with a uniform one: a constant log pi_ref cancels in the pair.
static Verdict claim_why_ratio(Text* found) {
    enum { T1 = 100 };
    float logp[T1], sum;
    int mask[T1];
    Toy ref = toy_new(2, 1.0), uniform = toy_new(1, 0.0);
    double p[TOY_ANSWERS], q[TOY_ANSWERS];
    for (int t = 0; t < T1; t++) logp[t] = (float)log(0.5), mask[t] = 1;
    sequence_logprobs(&sum, logp, mask, 1, T1);
    double trained = toy_dpo_distance(uniform.logp, ref.theta, 0.5);
    toy_optimum(p, ref.logp, ref.reward, 0.5);
    toy_optimum(q, uniform.logp, ref.reward, 0.5);
    double missed = toy_largest_difference(p, q, TOY_ANSWERS);
    text_printf(
        found,
        "large, yes: %.1f nats for %d tokens of probability 1/2. But DPO trains without ratios too: it "
        "arrives at exp(r/beta)/Z (distance %s), which differs by up to %.3f from pi_ref exp(r/beta)/Z. The "
        "ratio is there to keep pi_ref",
        sum, T1, trained < 1e-6 ? "0" : "not 0", missed);
    int large = sum < -50.0f, fails_without = !(trained < 1e-6);
    return decide(large && fails_without, large && missed > 0.01);
}

// Experiment 2 does not sample its tokens: the text is given. So the printed lines are tried on both.
static Verdict claim_small_drift(Text* found) {
    double logp[5], logp_ref[5], v, n, from_pi[2], from_ref[2];
    five_way(logp, logp_ref, 0.1);
    for (int i = 0; i < 2; i++) {
        from_pi[i] = kl_moments(&v, &n, logp, logp_ref, 5, -1.0, i ? 3 : 1);
        from_ref[i] = kl_moments(&v, &n, logp_ref, logp, 5, 1.0, i ? 3 : 1);
    }
    text_printf(
        found,
        "drift 0.1, printed k1 and k3: %+.5f and %+.5f on average over samples from pi, %+.5f and %+.5f "
        "over samples from pi_ref. They agree when pi_ref wrote the text",
        from_pi[0], from_pi[1], from_ref[0], from_ref[1]);
    int pi_agrees = fabs(from_pi[0] - from_pi[1]) < 0.1 * fabs(from_pi[1]);
    int ref_agrees = fabs(from_ref[0] - from_ref[1]) < 0.1 * fabs(from_ref[1]);
    return decide(pi_agrees && ref_agrees, ref_agrees);
}

static Verdict claim_large_drift(Text* found) {
    const double drifts[4] = {0.1, 0.5, 1.0, 2.0};
    int rises[2] = {1, 1};
    for (int from_ref = 0; from_ref <= 1; from_ref++) {
        double last = 0.0;
        text_printf(found, from_ref ? "; over samples from pi_ref"
                                    : "variance of k1 over that of k3, samples from pi");
        for (int i = 0; i < 4; i++) {
            double ratio = variance_ratio(drifts[i], from_ref);
            text_printf(found, "%s %.3g", i ? "," : "", ratio);
            rises[from_ref] &= ratio > last;
            last = ratio;
        }
    }
    text_printf(found, ", at drift 0.1, 0.5, 1, 2. It falls: the more drift, the worse for k3");
    return decide(rises[0] && rises[1], rises[0] || rises[1]);
}

static Verdict claim_six_of_eight(Text* found) {
    float reward[8], adv[8], equal[8];
    reward_first(reward, 8, 8);
    advantages_grpo(equal, reward, 8, 1e-8f);
    reward_first(reward, 8, 2);
    advantages_grpo(adv, reward, 8, 1e-8f);
    text_printf(found,
                "two rewards 1, six rewards 0: advantages %+.2f and %+.2f. Only eight equal ones give %g",
                adv[0], adv[7], equal[0]);
    double largest = 0.0;
    for (int k = 0; k < 8; k++) largest = fmax(largest, fabs((double)adv[k]));
    return decide(largest < 0.1, 0);
}

static const Claim claims[] = {
    {1, "before training", "A start model that cannot do the task learns nothing from RL.",
     claim_start_model},
    {1, "a rollout",
     "If the temperature is too low the answers are nearly the same and there is nothing to learn.",
     claim_temperature},
    {1, "a rollout", "A group that is all right or all wrong teaches nothing.", claim_silent_group},
    {1, "the reward", "The reward reads the number behind the last ####.", claim_last_hash},
    {1, "the reward", "The same number gets 1; another number, or none that can be read, gets 0.",
     claim_same_number},
    {1, "the reward", "A lucky guess can be rewarded.", claim_lucky_guess},
    {1, "the reward", "The finer the reward, the steadier the training.", claim_finer_reward},
    {1, "the advantage", "Three right answers of sixteen: the mean reward is 3/16 = 0.1875.", claim_mean},
    {1, "the advantage", "Right answers then have a positive advantage, wrong ones a negative one.",
     claim_signs},
    {1, "the advantage", "So the log-probability of right answers goes up and that of wrong ones goes down.",
     claim_right_up},
    {1, "the advantage", "Samples of the current model, at temperature 1 with top-k 50, are on-policy.",
     claim_on_policy},
    {1, "the advantage", "On-policy, PPO's clipping of the ratio is not needed.", claim_no_clip},
    {1, "the loss",
     "Maximizing advantage x sum of log-probs is the same as minimizing minus that, divided by the number "
     "of valid tokens.",
     claim_equivalent_loss},
    {1, "the tool",
     "The tool's output, 36 for 12*3, is inserted with mask 0 and moves no parameter by itself.", claim_mask},
    {1, "pass@k", "pass@1 is the chance of one try, pass@16 that of at least one success in sixteen.",
     claim_pass_meaning},
    {1, "pass@k", "pass@k usually rises with k.", claim_pass_rises},
    {1, "pass@k", "pass@k does not tell the accuracy of a single answer.", claim_pass_not_accuracy},

    {2, "overview", "Half of 3x-9 equals x+37: the answer is 83.", claim_equation},
    {2, "section 1",
     "From 15.2% in 10.1 minutes to 52.0% in 862.6: without touching the weights, each point costs more and "
     "more.",
     claim_price},
    {2, "section 1",
     "GRPO takes its signal from comparing the samples with each other, without a value model.",
     claim_comparison},
    {2, "section 2", "Comparisons of pairs can be turned into scores.", claim_pairs},
    {2, "sections 3, 4", "The four rollouts get [1,1,0,0].", claim_four},
    {2, "section 4",
     "r3 is right and gets 0, because the fallback for answers without a box is switched off.", claim_r3},
    {2, "section 4", "Only right and in the box pays, so the format needs no rule of its own.",
     claim_format_inside},
    {2, "section 6", "12,500 problems less 500 for the exam leave 12,000 to train on.", claim_split},
    {2, "limits", "A near miss and utter nonsense get the same reward.", claim_near_miss},

    {3, "section 1", "The gradient of log p(tau) contains no term of the dynamics.", claim_no_dynamics},
    {3, "section 1", "Without an end, only gamma < 1 makes the sum of rewards converge.",
     claim_discount_converges},
    {3, "section 1", "The advantage is relative, and V, Q and A are out of date once the policy moves.",
     claim_relative},
    {3, "section 2", "The thermostat starts at random and learns to heat when cold and to stop when warm.",
     claim_thermostat},
    {3, "section 3",
     "With deterministic transitions the probability of an answer is exactly the product of its tokens' "
     "probabilities.",
     claim_product},
    {3, "section 3", "Thousands of factors below 1 underflow; sums of logs do not.", claim_underflow},
    {3, "section 3", "Logits at t belong to token t+1; without the shift one trains on nonsense.",
     claim_shift},
    {3, "section 3",
     "128,000 tokens and 4,000 steps make astronomically many trajectories, for one bit of reward.",
     claim_size},
    {3, "section 4",
     "Token as action and whole answer as action are equivalent (gamma 1, one reward at the end).",
     claim_bandit},
    {3, "section 4", "0.99^500 is about 0.6%.", claim_point_six_percent},
    {3, "section 4", "Discounting the tokens of an answer is a bias that one makes oneself.",
     claim_discount_bias},
    {3, "section 4", "Dividing by the group's standard deviation standardizes the advantages.",
     claim_grpo_std},
    {3, "section 4", "RLOO is the centered advantage times K/(K-1), which makes it unbiased.", claim_rloo},
    {3, "section 4", "The finer credit of a value function adds little.", claim_value_function},
    {3, "sections 0, 4", "A group mean as baseline does not work on CartPole.", claim_cartpole},
    {3, "section 5", "Without the KL term the optimizer finds the holes of the reward model.", claim_hole},
    {3, "section 5",
     "KL is asymmetric, never negative, 0 only between equals, and breaks the triangle inequality.",
     claim_kl_properties},
    {3, "section 5", "k1 = log(pi/pi_ref) is unbiased, noisy, and may be negative.", claim_k1},
    {3, "section 5", "The printed line of code for k1, -log_ratio, is unbiased.", claim_printed_k1},
    {3, "section 5", "The printed line of code for k3, exp(log_ratio)-1-log_ratio, is unbiased.",
     claim_printed_k3},
    {3, "section 5", "k3 has a lower variance than k1.", claim_k3_variance},
    {3, "section 5, experiment 2", "k3 is never negative, sample by sample.", claim_k3_positive},
    {3, "section 5",
     "The KL estimate (k3 by preference) can be subtracted from the reward to get the objective.",
     claim_kl_in_reward},
    {3, "section 5", "Reward minus beta times the mean KL per token is the objective, literally.",
     claim_sum_or_mean},
    {3, "section 6", "SFT has no negative examples: it can teach what to do, not what to avoid.",
     claim_no_negative},
    {3, "section 6", "The DPO loss has the form of the reward model's loss.", claim_same_form},
    {3, "section 6", "DPO leads to the optimum of the KL-regularized objective.", claim_dpo_optimum},
    {3, "section 6", "RL, rejection sampling and DPO optimize the same objective.", claim_three_routes},
    {3, "section 6", "A verifiable 0/1 reward cannot be cheated.", claim_cheating},
    {3, "section 6", "More samples in parallel raise the score in proportion to the log of the compute.",
     claim_log_linear},
    {3, "section 8", "Tulu 3's third stage has two orders of magnitude less data than the first two.",
     claim_two_orders},
    {3, "experiment 1", "Leave the mask out and the log-probability is far off.", claim_prompt_in_sum},
    {3, "experiment 1", "DPO uses ratios because log-probabilities of answers are large negative numbers.",
     claim_why_ratio},
    {3, "experiment 2", "Under small drift the printed k1 and k3 are close to each other.",
     claim_small_drift},
    {3, "experiment 2", "The larger the drift, the wilder is k1 beside k3.", claim_large_drift},
    {3, "experiment 3", "Six of eight scores are equal, and the standardized advantages are near 0.",
     claim_six_of_eight},
};
enum { CLAIMS = sizeof claims / sizeof *claims };

// A label, then a text in lines of at most `width` characters, broken at spaces where there is one.
static void append_wrapped(Text* out, const char* label, const char* text, int width) {
    while (*text) {
        int n = (int)strlen(text), cut = n > width ? width : n;
        while (n > width && cut > 0 && text[cut] != ' ') cut--;
        if (cut == 0) cut = width;
        text_printf(out, "    %-9s%.*s\n", label, cut, text);
        for (text += cut, label = ""; *text == ' ';) text++;
    }
}

// Text for a cell of a Markdown table: what Markdown would read as a mark of its own gets a backslash.
static void append_markdown(Text* out, const char* text) {
    for (; *text; text++) {
        if (strchr("\\|*_<>$[]", *text)) text_append(out, "\\", 1);
        text_append(out, text, 1);
    }
}

static void append_claim(Text* out, int number, const Claim* claim, const char* found, Verdict verdict) {
    char left[64];
    snprintf(left, sizeof left, "%2d  D%d, %s", number, claim->document, claim->place);
    text_printf(out, "%s%*s\n", left, 80 - (int)strlen(left), verdict_names[verdict]);
    append_wrapped(out, "says", claim->statement, 67);
    append_wrapped(out, "computed", found, 67);
    text_printf(out, "\n");
}

static void append_claim_row(Text* out, int number, const Claim* claim, const char* found, Verdict verdict) {
    text_printf(out, "| %d | D%d, %s | ", number, claim->document, claim->place);
    append_markdown(out, claim->statement);
    text_printf(out, " | ");
    append_markdown(out, found);
    text_printf(out, " | %s |\n", verdict_names[verdict]);
}

// Computes every claim and writes the ledger, for a terminal or as a Markdown table.
static void write_claims(Text* out, int markdown) {
    int count[VERDICTS] = {0};
    text_printf(out,
                "%s\n\nWhat the three documents say, in our words, and what the functions of the\n"
                "chapters compute. The verdict follows from the numbers.\n\n",
                markdown ? "# The claims ledger" : "THE CLAIMS LEDGER");
    if (markdown)
        text_printf(out, "| No. | Where | It says | Computed | Verdict |\n|---:|---|---|---|---|\n");
    for (int i = 0; i < CLAIMS; i++) {
        Text found = {0};
        Verdict verdict = claims[i].check(&found);
        (markdown ? append_claim_row : append_claim)(out, i + 1, &claims[i], found.data, verdict);
        count[verdict]++;
        text_free(&found);
    }
    text_printf(out, "%s%d statements: %d hold, %d hold with a condition, %d do not hold as printed.\n",
                markdown ? "\n" : "", CLAIMS, count[HOLDS], count[HOLDS_WITH_CONDITION],
                count[DOES_NOT_HOLD]);
}

static int command_claims(int argc, char** argv) {
    int markdown = 0;
    Text out = {0};
    Option options[] = {{"markdown", OPTION_FLAG, &markdown, 0, 0, "print a table in Markdown", 0, 0}, {0}};
    if (asked_for_help(argc, argv, "claims - the statements of the three documents, each computed",
                       "./rl claims [--markdown]", options))
        return 0;
    parse_options(options, argc, argv, NULL, 0);
    write_claims(&out, markdown);
    printf("%s", out.data);
    text_free(&out);
    return 0;
}

// ==========================================================================================================
// The command line
// ==========================================================================================================
//
// Nothing below teaches reinforcement learning: it parses options, prints tables and calls the chapters.

// ---- text for people

// A token sequence, fit for a terminal: calls of the tool as [17+26 -> 43], bytes that are no text as \xNN.
static void append_readable(Text* out, const char* text) {
    static const char *const start = "<|python_start|>", *const end = "<|python_end|>",
                             *const from = "<|output_start|>", *const to = "<|output_end|>";
    text_append(out, "", 0);
    for (const char *s = text, *stop = text + strlen(text); s < stop;) {
        const char *e = strstr(s, end), *o = e ? e + strlen(end) : NULL, *t = o ? strstr(o, to) : NULL;
        if (!strncmp(s, start, strlen(start)) && t && !strncmp(o, from, strlen(from))) {
            s += strlen(start), o += strlen(from);
            text_append(out, "[", 1), append_printable(out, s, (size_t)(e - s));
            text_append(out, " -> ", 4), append_printable(out, o, (size_t)(t - o)), text_append(out, "]", 1);
            s = t + strlen(to);
            continue;
        }
        const char* end_name = special_names[ASSISTANT_END - 256];
        if (!strncmp(s, end_name, strlen(end_name))) { s += strlen(end_name); continue; }
        int n = max_int(1, utf8_length(s, stop));
        append_printable(out, s, (size_t)n), s += n;
    }
}

// One line of a column: up to `width` characters from *s, broken at a space or newline; *s moves behind it.
// With `fill` the rest of the width is filled with spaces.
static void print_cell(const char** s, int width, int fill) {
    int used = 0, space = -1, count = 0;
    const char *p = *s, *at_space = NULL;
    while (*p && *p != '\n' && used < width) {
        if (*p == ' ') space = used, at_space = p;
        p += max_int(1, utf8_length(p, p + strlen(p)));
        used++;
    }
    if (*p && *p != '\n' && *p != ' ' && space > 0) used = space, p = at_space;
    count = (int)(p - *s);
    printf("%.*s%*s", count, *s, fill ? width - used : 0, "");
    *s = p + (*p == ' ' || *p == '\n');
}

static void print_side_by_side(const char* left, const char* right) {
    while (*left || *right) {
        printf("  ");
        print_cell(&left, 37, 1);
        printf(*right ? " | " : " |");
        print_cell(&right, 37, 0);
        printf("\n");
    }
}

// A labelled text, wrapped at 80 columns; of a longer one than `lines`, the beginning.
static void print_beginning(const char* label, const char* text, int lines) {
    Text shown = {0};
    append_printable(&shown, text, strlen(text));
    const char* s = shown.data;
    int indent = *label ? 10 : 2;
    do {
        printf("%-*s", indent, s == shown.data ? label : "");
        print_cell(&s, 78 - indent, 0);
        printf(*s && lines == 1 ? " ..\n" : "\n");
    } while (*s && --lines);
    text_free(&shown);
}

static void print_wrapped(const char* label, const char* text) { print_beginning(label, text, INT_MAX); }

// A plot of letters, for any terminal. Each series is drawn with the first letter of its name (or A to D, if
// an earlier name begins alike), '*' where two meet. A column shows the mean of the points that fall into it,
// and between points a straight line. 12 rows and 60 columns lie between the ends of the axes, because 2, 3
// and 4 divide them: so many parts a scale can have.
enum { PLOT_SERIES = 4, PLOT_WIDTH = 61, PLOT_HEIGHT = 13, PLOT_PARTS = 4 };

typedef struct {
    const char *title, *x_name;
    const double* x;                      // (points) ascending
    const double* y[PLOT_SERIES];         // (points) each; what is not finite is left out
    const char* names[PLOT_SERIES];
    int series, points;
    int scaled;                           // each series from its own min to its own max: for different units
    int log_x;
} Plot;

typedef struct { double low, high; } Range;

static void widen(Range* r, double v) { r->low = fmin(r->low, v), r->high = fmax(r->high, v); }

typedef struct { double low, step; int parts; } Scale;   // numbers at low, low + step, ... low + parts step

// The tightest scale around r, of 2 to PLOT_PARTS steps, each 1, 2, 2.5 or 5 times a power of ten.
static Scale round_scale(Range r) {
    static const double steps[] = {1.0, 2.0, 2.5, 5.0, 10.0, 20.0, 25.0, 50.0};
    double width = r.high > r.low ? r.high - r.low : fmax(fabs(r.high), 1.0), best = INFINITY;
    double unit = pow(10.0, floor(log10(width / PLOT_PARTS)));
    Scale scale = {r.low, width / 2, 2};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        for (int parts = 2; parts <= PLOT_PARTS; parts++) {
            double step = steps[i] * unit, first = floor(r.low / step + 1e-9);
            if ((first + parts) * step < r.high - 1e-9 * step || parts * step >= best) continue;
            best = parts * step, scale = (Scale){first * step, step, parts};
        }
    return scale;
}

static double plot_x(const Plot* p, int i) { return p->log_x ? log(p->x[i]) : p->x[i]; }
static int plot_has(const Plot* p, int s, int i) { return isfinite(plot_x(p, i)) && isfinite(p->y[s][i]); }

// Value of series s in column c, or NaN.
static double plot_value(const Plot* p, int s, int c, Range x) {
    double sum = 0.0, at[2] = {-INFINITY, INFINITY}, y[2] = {0.0, 0.0};   // the neighbours left and right
    int count = 0;
    for (int i = 0; i < p->points; i++) {
        if (!plot_has(p, s, i)) continue;
        double exact = x.high > x.low ? (plot_x(p, i) - x.low) / (x.high - x.low) * (PLOT_WIDTH - 1) : 0.0;
        int column = (int)(exact + 0.5);
        if (column == c) sum += p->y[s][i], count++;
        if (column < c) at[0] = exact, y[0] = p->y[s][i];
        if (column > c && isinf(at[1])) at[1] = exact, y[1] = p->y[s][i];
    }
    if (count) return sum / count;
    if (isinf(at[0]) || isinf(at[1])) return NAN;
    return y[0] + (y[1] - y[0]) * (c - at[0]) / (at[1] - at[0]);
}

static char plot_letter(const Plot* p, int s) {
    for (int i = 0; i < s; i++) if (p->names[i][0] == p->names[s][0]) return "ABCD"[s];
    return p->names[s][0];
}

// The axis below the plot: a number at each of the PLOT_PARTS + 1 ticks, and the name.
static void append_plot_axis(Text* out, const Plot* p, Range x) {
    char line[PLOT_WIDTH + 16];
    int part = (PLOT_WIDTH - 1) / PLOT_PARTS;
    memset(line, ' ', sizeof line);
    text_printf(out, "%9s", "");
    for (int c = 0; c < PLOT_WIDTH; c++) text_append(out, c % part ? "-" : "+", 1);
    for (int i = 0; i <= (x.high > x.low ? PLOT_PARTS : 0); i++) {
        char number[16];
        double v = x.low + (x.high - x.low) * i / PLOT_PARTS;
        if (p->log_x) v = exp(v);
        else if (x.high - x.low >= 20.0) v = floor(v + 0.5);
        int length = snprintf(number, sizeof number, "%.4g", v);
        memcpy(line + 9 + i * part - (i ? length / 2 : 0), number, (size_t)length);
    }
    int end = (int)sizeof line;
    while (line[end - 1] == ' ') end--;
    int indent = 9 + (PLOT_WIDTH - (int)strlen(p->x_name)) / 2;
    text_printf(out, "\n%.*s\n%*s%s\n", end, line, indent, "", p->x_name);
}

static void append_plot_legend(Text* out, const Plot* p, const Range* own, int met) {
    for (int s = 0; s < p->series; s++) {
        text_printf(out, "\n  %c  %s", plot_letter(p, s), p->names[s]);
        if (own[s].low <= own[s].high) text_printf(out, ": %.4g to %.4g", own[s].low, own[s].high);
        else text_printf(out, ": no numbers");
    }
    text_printf(out, met ? "\n  *  more than one of them\n" : "\n");
}

static void append_plot(Text* out, const Plot* p) {
    char grid[PLOT_HEIGHT][PLOT_WIDTH];
    const Range nothing = {INFINITY, -INFINITY};
    Range x = nothing, all = nothing, own[PLOT_SERIES] = {nothing, nothing, nothing, nothing};
    int met = 0;
    text_printf(out, "%s\n\n", p->title);
    for (int s = 0; s < p->series; s++)
        for (int i = 0; i < p->points; i++) {
            if (!plot_has(p, s, i)) continue;
            widen(&x, plot_x(p, i)), widen(&own[s], p->y[s][i]), widen(&all, p->y[s][i]);
        }
    if (x.low > x.high) { text_printf(out, "  (there is nothing to draw)\n"); return; }
    Scale scale = round_scale(all);
    all = (Range){scale.low, scale.low + scale.parts * scale.step};
    memset(grid, ' ', sizeof grid);
    for (int s = 0; s < p->series; s++)
        for (int c = 0; c < PLOT_WIDTH; c++) {
            double v = plot_value(p, s, c, x);
            Range r = p->scaled ? own[s] : all;
            if (isnan(v)) continue;
            double height = r.high > r.low ? (v - r.low) / (r.high - r.low) : 0.5;
            char* cell = &grid[(int)((1.0 - height) * (PLOT_HEIGHT - 1) + 0.5)][c];
            met |= *cell != ' ', *cell = *cell == ' ' ? plot_letter(p, s) : '*';
        }
    for (int row = 0; row < PLOT_HEIGHT; row++) {
        int part = (PLOT_HEIGHT - 1) / scale.parts, end = PLOT_WIDTH;
        double steps = floor(scale.low / scale.step + 0.5) + scale.parts - row / part;   // 0 is exactly 0
        while (end && grid[row][end - 1] == ' ') end--;
        if (p->scaled) text_printf(out, "%7s", row == 0 ? "max" : row == PLOT_HEIGHT - 1 ? "min" : "");
        else if (row % part) text_printf(out, "%7s", "");
        else text_printf(out, "%7.4g", steps * scale.step);
        text_printf(out, " |%.*s\n", end, grid[row]);
    }
    append_plot_axis(out, p, x);
    append_plot_legend(out, p, own, met);
}

static void print_plot(const Plot* p) {
    Text text = {0};
    append_plot(&text, p);
    fputs(text.data, stdout);
    text_free(&text);
}

// Where --out FILE leads: fills in the folder, which is made if it is not there, and returns the name in it.
// To be called before the work too, so that a bad name costs no minutes.
static const char* out_file(char folder[PATH_SIZE], const char* path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    FileSet* files = NULL;
    struct stat info;
    int there = stat(path, &info) == 0;
    if (!*name || (there && S_ISDIR(info.st_mode)))
        fail(2, "--out '%s' is not the name of a file; --out out/table.csv would be one", path);
    if (there && !S_ISREG(info.st_mode))   // the new file takes its place: root would lose /dev/null for good
        fail(2, "--out '%s' is a device or a pipe, which a file would replace; choose another name", path);
    if (strlen(name) >= sizeof files->name[0] || strlen(path) + 8 > PATH_SIZE)
        fail(2, "--out: the file name %s is too long; %zu bytes fit", name, sizeof files->name[0] - 1);
    int length = slash ? max_int(1, (int)(slash - path)) : 1;      // of /table.csv the folder is /
    snprintf(folder, PATH_SIZE, "%.*s", length, slash ? path : ".");
    make_folder(folder);
    return name;
}

static void write_out_file(const char* path, Text* text) {
    char folder[PATH_SIZE];
    const char* name = out_file(folder, path);
    write_file(folder, name, text);
    printf("\nwrote %s\n", path);
    text_free(text);
}

// ---- options of all commands that use a model

enum { RL_OPTIONS = 64 };

static int sampling_options(Option* t, RlOptions* o) {
    Option table[] = {
        {"model-tag", OPTION_TEXT, &o->model, 0, 0, "model to start from: a directory, or out/TAG", 1, 0},
        {"reward", OPTION_TEXT, &o->reward, 0, 0, "gsm8k (after ####), boxed; train: model:DIR, sums (+)", 1,
         0},
        {"num-samples", OPTION_INT, &o->num_samples, 1, 4096, "rollouts per question (nanochat: 16)", 1, 0},
        {"max-new-tokens", OPTION_INT, &o->sample.max_new_tokens, 1, 65536, "longest rollout (nanochat: 256)",
         1, 0},
        {"temperature", OPTION_FLOAT, &o->sample.temperature, 0, 100,
         "0 = always the likeliest token (nanochat: 1.0)", 1, 0},
        {"top-k", OPTION_INT, &o->sample.top_k, 0, 1e6, "sample from the k likeliest, 0 = all (nanochat: 50)",
         1, 0},
        {"top-p", OPTION_FLOAT, &o->sample.top_p, 0, 1, "sample from the likeliest up to this probability", 1,
         0},
        {"seed", OPTION_SEED, &o->seed, 0, 0, "of everything random", 1, 0},
        {"threads", OPTION_INT, &o->threads, 0, 1024, "threads; 0 = all cores", 0, 0},
    };
    memcpy(t, table, sizeof table);
    return (int)(sizeof table / sizeof *table);
}

static int training_options(Option* t, RlOptions* o) {
    Option table[] = {
        {"data", OPTION_TEXT, &o->data, 0, 0, "questions to train on", 1, 0},
        {"eval-data", OPTION_TEXT, &o->eval_data, 0, 0, "questions to evaluate on", 1, 0},
        {"allow-overlap", OPTION_FLAG, &o->allow_overlap, 0, 0, "evaluate also on questions trained on", 1,
         0},
        {"out", OPTION_TEXT, &o->out, 0, 0, "directory for checkpoint and metrics.csv", 0, 0},
        {"resume", OPTION_TEXT, &o->resume, 0, 0, "directory of a run to go on with", 0, 0},
        {"examples-per-step", OPTION_INT, &o->examples_per_step, 1, 4096,
         "questions per update (nanochat: 16)", 1, 0},
        {"num-epochs", OPTION_INT, &o->num_epochs, 1, 1e6, "passes over the questions (nanochat: 1)", 1, 0},
        {"num-steps", OPTION_INT, &o->num_steps, 0, 1e9, "updates; 0 = as num-epochs says", 1, 0},
        {"lr", OPTION_FLOAT, &o->lr, 0, 10, "the learning rate of supervised training", 1, 0},
        {"init-lr-frac", OPTION_FLOAT, &o->init_lr_frac, 0, 1,
         "fraction of it to begin with (nanochat: 0.05)", 1, 0},
        {"weight-decay", OPTION_FLOAT, &o->adam.weight_decay, 0, 10, "AdamW: decay of matrices (nanochat: 0)",
         1, 0},
        {"grad-clip", OPTION_FLOAT, &o->grad_clip, 0, 1e9, "longest gradient norm; 0 = any (nanochat: none)",
         1, 0},
        {"eval-every", OPTION_INT, &o->eval_every, 0, 1e9, "updates between evaluations (nanochat: 60)", 1,
         0},
        {"eval-examples", OPTION_INT, &o->eval_examples, 1, 1e9, "questions of an evaluation (nanochat: 400)",
         1, 0},
        {"eval-samples", OPTION_INT, &o->eval_samples, 1, 4096, "rollouts of each of them", 1, 0},
        {"save-every", OPTION_INT, &o->save_every, 0, 1e9,
         "updates between saves; 0 = at the end (nanochat: 60)", 0, 0},
        {"log-every", OPTION_INT, &o->log_every, 1, 1e9, "updates per printed line", 0, 0},
    };
    memcpy(t, table, sizeof table);
    return (int)(sizeof table / sizeof *table);
}

// The decisions of a method; --algo sets all of them, and each can be set by itself.
static void method_options(Option* t, RlOptions* o) {
    Option table[] = {
        {"algo", OPTION_TEXT, &o->algo, 0, 0, "a row of `./rl algos`: sets all that follows", 1, 0},
        {"advantage", OPTION_TEXT, &o->advantage, 0, 0, "none, centered, rloo, grpo or gae", 1, 0},
        {"ratio", OPTION_TEXT, &o->ratio, 0, 0, "pi/pi_old: none, token, sequence or cispo", 1, 0},
        {"norm", OPTION_TEXT, &o->norm, 0, 0, "average by token, sequence, sum or constant", 1, 0},
        {"clip-low", OPTION_FLOAT, &o->clip_low, 0, 1, "the ratio counts from 1 - this", 1, 0},
        {"clip-high", OPTION_FLOAT, &o->clip_high, 0, 1e6, "to 1 + this", 1, 0},
        {"beta", OPTION_FLOAT, &o->beta, 0, 1e6, "price of a nat of KL to the reference", 1, 0},
        {"kl-estimator", OPTION_TEXT, &o->kl_estimator, 0, 0, "k1, k2 or k3 (chapter 8)", 1, 0},
        {"kl-in", OPTION_TEXT, &o->kl_in, 0, 0, "the loss, or the reward", 1, 0},
        {"kl-per", OPTION_TEXT, &o->kl_per, 0, 0, "in the reward: sum per sequence, or mean per token", 1, 0},
        {"reference", OPTION_TEXT, &o->reference, 0, 0, "model of the KL; with --beta 0 only measured", 1,
         0},
        {"epochs-per-batch", OPTION_INT, &o->epochs_per_batch, 1, 1000, "passes over the same rollouts", 1,
         0},
        {"minibatch", OPTION_INT, &o->minibatch, 0, 4096, "questions per gradient step; 0 = all", 1, 0},
        {"resample", OPTION_INT, &o->resample, 0, 1000, "redraw groups without signal so often", 1, 0},
        {"overlong", OPTION_INT, &o->overlong, 0, 65536, "soft limit, tokens before the hard one", 1, 0},
        {"gamma", OPTION_FLOAT, &o->gamma, 0, 1, "gae: discount per token", 1, 0},
        {"lambda", OPTION_FLOAT, &o->lambda, 0, 1, "gae: 1 = no bias, 0 = no variance", 1, 0},
        {"value-lr", OPTION_FLOAT, &o->value_lr, 0, 10, "gae: learning rate of the value model", 1, 0},
        {"value-clip", OPTION_FLOAT, &o->value_clip, 0, 1e6, "gae: largest change of a value; 0 = any", 1, 0},
    };
    memcpy(t, table, sizeof table);
}

static void evaluation_options(Option* t, RlOptions* o) {
    Option table[] = {
        {"data", OPTION_TEXT, &o->eval_data, 0, 0, "questions to evaluate on", 0, 0},
        {"eval-examples", OPTION_INT, &o->eval_examples, 1, 1e9, "how many of them, from the top", 0, 0},
    };
    memcpy(t, table, sizeof table);
}

// gsm8k, boxed, model:DIR, or a sum such as gsm8k+model:DIR. The model's directory goes to judge, or "": it
// is not loaded yet, so that a word that is no reward is refused before anything is read.
static Reward read_reward(const char* text, char judge[PATH_SIZE]) {
    Reward r = {.verifier = &reward_kinds[0]};
    int models = 0;
    *judge = 0;
    for (const char* part = text;; part++) {
        char name[PATH_SIZE];
        size_t n = strcspn(part, "+");
        snprintf(name, sizeof name, "%.*s", (int)n, part);
        if (strncmp(name, "model:", 6)) {
            const RewardKind* verifier = find_reward(name);
            if (r.verified) fail(2, "--reward %s has two verifiers; one is enough", text);
            r.verifier = verifier, r.verified = 1;
        } else {
            if (models++) fail(2, "--reward %s has two reward models; one can be used", text);
            snprintf(judge, PATH_SIZE, "%s", name + 6);
            if (!*judge) fail(2, "--reward %s names no directory behind 'model:'", text);
        }
        part += n;
        if (!*part) return r;
    }
}

static void check_sampling(const RlOptions* o) {
    char judge[PATH_SIZE];
    read_reward(o->reward, judge);
    if (!(o->sample.top_p > 0.0f)) fail(2, "--top-p must be above 0");
}

// out/TAG, or the tag itself when it is a directory; returns whether it is there
static int find_tagged(char path[PATH_SIZE], const char* tag) {
    char config[PATH_SIZE];
    join_path(config, tag, "config.json");
    if (file_exists(config) || strchr(tag, '/')) snprintf(path, PATH_SIZE, "%s", tag);
    else join_path(path, "out", tag);
    return file_exists(path);
}

static void tagged_path(char path[PATH_SIZE], const char* tag) {
    if (!find_tagged(path, tag))
        fail(2, "there is no model %s; ./train_gpt makes out/sft, `make run` out/run/sft and out/run/rl",
             path);
}

static Model load_tagged_model(const char* tag) {
    char path[PATH_SIZE];
    tagged_path(path, tag);
    return load_fitting_model(path);
}

// A run may not be written over a model that it reads: that model would be gone, and a run that goes on after
// a stop would read what it has trained as its reference or judge.
static void refuse_overwriting(const char* out, const char* const* tags, int count) {
    char path[PATH_SIZE];
    for (int i = 0; i < count; i++)
        if (tags[i] && *tags[i] && find_tagged(path, tags[i]) && same_folder(out, path))
            fail(2, "the run would be written over the model in %s, which it reads; try another --out", path);
}

// Whether the directory of --out is there or can be made, as far as can be told without making it: a bad name
// is to cost no minutes, and a command that fails later leaves no empty directory.
static void check_folder_name(const char* out) {
    struct stat info;
    if (!*out) fail(2, "a directory was expected, but its name is empty");
    if (stat(out, &info) == 0) {
        if (!S_ISDIR(info.st_mode)) fail(1, "%s is not a directory", out);
        if (access(out, W_OK) != 0) fail(1, "cannot write into the directory %s: %s", out, strerror(errno));
    } else if (errno != ENOENT) fail(1, "cannot make the directory %s: %s", out, strerror(errno));
}

// ---- ./rl train

// Refuses to evaluate on questions (b, of the file `test`) that are trained on (a), unless told to.
static void refuse_overlap(const Problems* a, const Problems* b, const char* train, const char* test,
                           const char* hint, int allowed) {
    int shared = count_overlap(a, b, SAME_WORDS);
    if (shared && !allowed)
        fail(2,
             "%d of the %d questions of %s are trained on too, in %s, so a score on them would say nothing; "
             "%sanother --eval-data avoids them, --allow-overlap goes on",
             shared, b->count, test, train, hint);
    if (shared) printf("notice: %d of the %d questions of %s are trained on too\n", shared, b->count, test);
}

static void check_apart(const char* train, const char* test, int allowed) {
    Problems a = load_problems(train), b = load_problems(test);
    refuse_overlap(&a, &b, train, test, "./rl overlap shows them, ", allowed);
    problems_free(&a), problems_free(&b);
}

// A reward model for policies of this context.
static Model load_reward_model(const char* path, int context) {
    Model m = load_model(path);
    if (!m.config.scalar)
        fail(2, "%s is a language model, not a reward model; ./rl reward-model makes one", path);
    if (m.config.vocab_size != VOCAB_SIZE)
        fail(2, "the reward model %s has a vocabulary of %d tokens; this tokenizer has %d", path,
             m.config.vocab_size, VOCAB_SIZE);
    if (m.config.context < context)
        fail(2, "the reward model %s reads %d tokens; the policy's answers and prompts have up to %d", path,
             m.config.context, context);
    return m;
}

// The models that a run needs, as its options say. The learner points into this struct, which so must stay
// where it is.
typedef struct {
    Model policy, value, reference, judge;
    Optimizer optimizer, value_optimizer;
    Learner learner;
} Setup;

static void setup_load(Setup* s, const RlOptions* o, long step) {
    const char* resume = o->resume;
    char judge[PATH_SIZE];
    Reward reward = read_reward(o->reward, judge);
    refuse_overwriting(o->out, (const char* const[]){o->model, o->reference, judge}, 3);
    *s = (Setup){.policy = resume ? load_fitting_model(resume) : load_tagged_model(o->model)};
    const Config* c = &s->policy.config;
    s->optimizer = resume ? load_optimizer(resume, c, step) : optimizer_new(c);
    if (*judge) {
        s->judge = load_reward_model(judge, c->context), reward.model = &s->judge;
        s->judge.frozen = 1;
    }
    Learner* l = &s->learner;
    *l = learner_new(&s->policy, &s->optimizer, reward, o);
    if (l->advantage == ADVANTAGE_GAE) {
        l->value = &s->value, l->value_optimizer = &s->value_optimizer;
        if (resume) s->value = load_value_model(&s->value_optimizer, resume, c, step);
        else s->value = scalar_model_on(&s->policy), s->value_optimizer = optimizer_new(&s->value.config);
    }
    int named = o->reference && *o->reference;
    if (o->beta > 0.0f || named) {
        l->reference = &s->reference;
        s->reference = load_tagged_model(named ? o->reference : o->model);
        s->reference.frozen = 1;
        if (s->reference.config.context < c->context)
            fail(2, "the reference reads %d tokens, the policy %d", s->reference.config.context, c->context);
    }
}

static void setup_free(Setup* s) {
    if (s->learner.value) optimizer_free(&s->value_optimizer), model_free(&s->value);
    if (s->learner.reference) model_free(&s->reference);
    if (s->learner.reward.model) model_free(&s->judge);
    optimizer_free(&s->optimizer), model_free(&s->policy);
}

static int is_given(const Option* options, const char* name) {
    for (const Option* t = options; t->name; t++) if (!strcmp(t->name, name)) return t->given;
    return 0;
}

// An option that was given and would change nothing is refused, with the reason.
static void refuse_idle(const Option* options, const char* const* names, const char* why) {
    for (; *names; names++)
        if (is_given(options, *names)) fail(2, "--%s means nothing here: %s", *names, why);
}

// Decisions that contradict each other, or that the rollouts cannot bear.
static void check_method(const RlOptions* o, const Option* options) {
    int advantage = choose(o->advantage, advantage_names, "advantage");
    int ratio = choose(o->ratio, ratio_names, "ratio");
    int of_group = advantage != ADVANTAGE_NONE && advantage != ADVANTAGE_GAE;
    if (of_group && o->num_samples < 2)
        fail(2,
             "--advantage %s compares the answers to a question with each other, and --num-samples 1 leaves "
             "nothing to compare with; take 2 or more, or --advantage none",
             o->advantage);
    if (is_given(options, "minibatch") && o->minibatch > o->examples_per_step)   // a row's own is cut to size
        fail(2, "--minibatch %d is more than the %d questions of an update", o->minibatch,
             o->examples_per_step);
    if (o->overlong > o->sample.max_new_tokens)
        fail(2, "--overlong %d punishes from the first token on: an answer has %d at most (--max-new-tokens)",
             o->overlong, o->sample.max_new_tokens);
    if (o->resample && !of_group)
        fail(2,
             "--resample redraws questions whose answers have equal rewards, but with --advantage %s these "
             "have something to teach as well; take --resample 0",
             o->advantage);
    if (ratio == RATIO_NONE &&
        (o->epochs_per_batch > 1 || (o->minibatch && o->minibatch < o->examples_per_step)))
        fail(2,
             "with --ratio none each batch can be used for one gradient step only: after it the rollouts are "
             "those of an older policy, and nothing corrects for that; take --ratio token with --clip-low "
             "0.2 --clip-high 0.2, or --epochs-per-batch 1 --minibatch 0");
    if (ratio == RATIO_NONE)
        refuse_idle(options, (const char* const[]){"clip-low", "clip-high", NULL},
                    "with --ratio none there is no ratio to clip; take --ratio token");
    else if (o->clip_low == 0.0f && o->clip_high == 0.0f &&
             (o->epochs_per_batch > 1 || (o->minibatch && o->minibatch < o->examples_per_step)))
        fail(2, "--clip-low 0 --clip-high 0 lets no ratio but 1 count, and after the first gradient step of "
                "a batch there is hardly one; take --clip-low 0.2 --clip-high 0.2");
    if (o->beta == 0.0f)
        refuse_idle(options, (const char* const[]){"kl-estimator", "kl-in", "kl-per", NULL},
                    "there is no KL term with --beta 0");
    if (o->beta > 0.0f && !choose(o->kl_in, kl_in_names, "kl-in") &&
        !choose(o->kl_estimator, estimator_names, "kl-estimator"))
        fail(2, "--kl-estimator k1 in the loss pulls nowhere: its gradient is that of log pi, 0 on average "
                "(chapter 8); take k2 or k3, or --kl-in reward");
    if (choose(o->kl_in, kl_in_names, "kl-in") == 0)
        refuse_idle(options, (const char* const[]){"kl-per", NULL},
                    "in the loss the KL is averaged as --norm says; it is for --kl-in reward");
    if (advantage != ADVANTAGE_GAE)
        refuse_idle(options, (const char* const[]){"gamma", "lambda", "value-lr", "value-clip", NULL},
                    "only --advantage gae has steps to discount and a value model; an answer that is "
                    "rewarded as a whole has one advantage (chapter 4)");
    if (o->epochs_per_batch == 1)
        refuse_idle(
            options, (const char* const[]){"value-clip", NULL},
            "it holds a value near what it was, and that begins in a second epoch: --epochs-per-batch 2");
    choose(o->norm, norm_names, "norm"), choose(o->kl_estimator, estimator_names, "kl-estimator");
    choose(o->kl_per, kl_per_names, "kl-per");
}

// The columns of the printed table; the middle ones depend on what can move.
typedef struct { const char* name; int width, digits; size_t at; int when; } Column;
enum { ALWAYS, PLAIN, DRIFTING };     // PLAIN: on-policy, without a reference, the reward is the verifier's

static const Column columns[] = {
    {"reward", 7, 3, offsetof(Metrics, reward), ALWAYS},
    {"right", 6, 3, offsetof(Metrics, right), DRIFTING},
    {"solved", 7, 3, offsetof(Metrics, pass_rate), PLAIN},
    {"tool", 6, 3, offsetof(Metrics, tool_rate), PLAIN},
    {"format", 7, 3, offsetof(Metrics, format_rate), PLAIN},
    {"silent", 7, 1, offsetof(Metrics, silent), PLAIN},
    {"kl-ref", 7, 3, offsetof(Metrics, kl_ref), DRIFTING},
    {"kl-old", 8, 5, offsetof(Metrics, kl_old), DRIFTING},
    {"clipped", 8, 4, offsetof(Metrics, clip_fraction), DRIFTING},
    {"length", 7, 1, offsetof(Metrics, length), ALWAYS},
    {"entropy", 8, 3, offsetof(Metrics, entropy), ALWAYS},
    {"|grad|", 7, 3, offsetof(Metrics, grad_norm), ALWAYS},
    {"s", 6, 2, offsetof(Metrics, seconds), ALWAYS},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static int is_drifting(const RlOptions* o) {
    return o->beta > 0.0f || (o->reference && *o->reference) || o->epochs_per_batch > 1 || o->overlong ||
           strstr(o->reward, "model:") || (o->minibatch && o->minibatch < o->examples_per_step);
}

static void print_metrics_head(int drifting, int with_eval) {
    printf("%6s", "update");
    for (int i = 0; i < COLUMNS; i++)
        if (columns[i].when != (drifting ? PLAIN : DRIFTING))
            printf("%*s", columns[i].width, columns[i].name);
    printf("%s\n", with_eval ? "   test" : "");
}

// One line for the n updates since the last one: means over them. sum (COLUMNS).
static void print_metrics(long step, const double* sum, int n, int drifting, double test) {
    printf("%6ld", step);
    for (int i = 0; i < COLUMNS; i++)
        if (columns[i].when != (drifting ? PLAIN : DRIFTING))
            printf("%*.*f", columns[i].width, columns[i].digits, sum[i] / n);
    if (!isnan(test)) printf("  %5.3f", test);
    printf("\n");
    fflush(stdout);
}

static void save_rl(const Learner* l, const Option* options, long step) {
    save_run(l->o->out, "rl", options, step, l->policy, l->optimizer, l->value, l->value_optimizer);
}

// The whole run, from update `step` on. Saves into o->out; after Ctrl-C it returns early, saved as well.
// Returns 0, or 130 after Ctrl-C.
static int rl_train(Learner* l, const Option* options, long step) {
    const RlOptions* o = l->o;
    int context = l->policy->config.context, room = o->sample.max_new_tokens, n = 0;
    Questions q = load_questions(o->data, context, room), test = {0};
    if (o->eval_every) test = load_questions(o->eval_data, context, room);
    Deck deck = deck_new(q.count, o->seed);
    int* chosen = allocate((size_t)o->examples_per_step, sizeof(int));
    long steps = o->num_steps ? o->num_steps
                              : (long)o->num_epochs * max_int(1, q.count / o->examples_per_step);
    Run run = run_begin(o->out, o->resume, METRICS_HEADER, step, steps, o->log_every, o->save_every);
    printf("reinforcement learning (%s): %ld updates of %d questions x %d rollouts\n  reward: %s\n",
           o->algo, steps, o->examples_per_step, o->num_samples, o->reward);
    print_metrics_head(is_drifting(o), o->eval_every > 0);
    double sum[COLUMNS] = {0};
    while (run_goes_on(&run)) {
        deck_deal(chosen, &deck, run.step, o->examples_per_step);
        Metrics s = rl_step(l, &q, chosen, run.step, lr_schedule(run.step, steps, 0, 0.0));
        for (int i = 0; i < COLUMNS; i++) sum[i] += *(const double*)((const char*)&s + columns[i].at);
        run_count(&run, s.loss + s.entropy + s.value_loss, s.grad_norm), n++;
        if (o->eval_every && run.step % o->eval_every == 0) {
            Evaluation e = evaluate_model(l->policy, &test, o->eval_examples, o->eval_samples, o->sample,
                                          l->reward.verifier, NULL, o->seed + 2);
            s.test = e.pass[0];
            evaluation_free(&e);
        }
        write_metrics(run.metrics, run.step - 1, &s);
        if (run_logs(&run) || !isnan(s.test)) {
            print_metrics(run.step, sum, n, is_drifting(o), s.test);
            memset(sum, 0, sizeof sum), n = 0;
        }
        if (run_saves(&run)) save_rl(l, options, run.step);
    }
    questions_free(&q), questions_free(&test);
    free(deck.order), free(chosen);
    return run_end(&run, "./rl train", o->out);
}

// --algo NAME or --algo=NAME, wherever it stands: its row must be there before the other options are read.
static const char* asked_algo(int argc, char** argv) {
    const char* name = methods[0].name;
    for (int i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "--algo=", 7)) name = argv[i] + 7;
        if (!strcmp(argv[i], "--algo") && i + 1 < argc) name = argv[i + 1];
    }
    return name;
}

static int command_train(int argc, char** argv) {
    RlOptions o = rl_defaults();
    Option options[RL_OPTIONS] = {{0}};
    int n = sampling_options(options, &o);
    n += training_options(options + n, &o);
    method_options(options + n, &o);
    set_method(&o, asked_algo(argc, argv));
    if (asked_for_help(argc, argv, "train - reinforcement learning from a reward",
                       "./rl train [--algo NAME] [--option=value ...]", options))
        return 0;
    parse_options(options, argc, argv, NULL, 0);
    if (o.resume && is_given(options, "algo"))
        fail(2, "a run keeps its method when it is resumed; leave --algo out");
    long step = o.resume ? state_from_json(o.resume, "rl", options) : 0;
    if (o.resume && o.out == rl_defaults().out) o.out = o.resume;
    check_sampling(&o);
    check_method(&o, options);
    set_threads(o.threads);
    Setup setup;
    setup_load(&setup, &o, step);
    if (o.eval_every) check_apart(o.data, o.eval_data, o.allow_overlap);
    int status = rl_train(&setup.learner, options, step);
    if (!status) printf("saved %s\n", o.out);
    setup_free(&setup);
    return status;
}

// ---- ./rl algos

static int command_algos(int argc, char** argv) {
    Option options[] = {{0}};
    if (asked_for_help(argc, argv, "algos - the methods of ./rl train, and what makes them different",
                       "./rl algos", options))
        return 0;
    parse_options(options, argc, argv, NULL, 0);
    print_methods();
    return 0;
}

// ---- ./rl pairs, ./rl reward-model, ./rl dpo

typedef struct {
    RlOptions rl;                    // sampling and what all training has: model, data, out, lr, beta, ...
    const char *questions, *eval_questions, *judge, *loss;
    int per_question, most_pairs, batch_size, warmup_steps;
    float noise;
} PairOptions;

// The two commands that train on pairs. Their defaults are what differs.
typedef struct {
    const char *name, *what, *out, *loss, *judge;
    int scalar;
    float lr;
} PairCommand;

static const PairCommand pair_commands[] = {
    {"reward-model", "reward-model - a judge that learns from pairs of answers", "out/reward",
     "bradley-terry", "mixed", 1, 1e-3f},
    {"dpo", "dpo - direct preference optimization: a policy from pairs of answers", "out/dpo",
     "dpo", "verifier", 0, 3e-5f},
};

static PairOptions pair_defaults(const PairCommand* c) {
    PairOptions o = {.rl = rl_defaults(), .judge = c->judge, .loss = c->loss, .per_question = 4,
                     .batch_size = 32, .warmup_steps = 10};
    o.questions = o.rl.data, o.eval_questions = o.rl.eval_data, o.rl.data = o.rl.eval_data = NULL;
    o.rl.out = c->out, o.rl.num_epochs = 1, o.rl.lr = c->lr, o.rl.log_every = 10;
    o.rl.beta = c->scalar ? 1.0f : 0.1f;
    return o;
}

// How pairs are made. `questions` is the name of the option for the file of questions.
static int judging_options(Option* t, PairOptions* o, const char* questions) {
    Option table[] = {
        {questions, OPTION_TEXT, &o->questions, 0, 0, "questions to sample answers to", 1, 0},
        {"judge", OPTION_TEXT, &o->judge, 0, 0, "verifier, demos, mixed, longer, shorter, wordy", 1, 0},
        {"pairs-per-question", OPTION_INT, &o->per_question, 1, 1e6, "at most so many pairs of each", 1, 0},
        {"pairs", OPTION_INT, &o->most_pairs, 0, 1e9, "so many of all pairs; 0 = all", 1, 0},
        {"noise", OPTION_FLOAT, &o->noise, 0, 1, "share of judgements that are turned around", 1, 0},
    };
    memcpy(t, table, sizeof table);
    return (int)(sizeof table / sizeof *table);
}

static void preference_options(Option* t, PairOptions* o, const PairCommand* c) {
    RlOptions* r = &o->rl;
    Option table[] = {
        {"data", OPTION_TEXT, &r->data, 0, 0, "pairs to train on; none = make them", 1, 0},
        {"eval-data", OPTION_TEXT, &r->eval_data, 0, 0, "held-out pairs", 1, 0},
        {"allow-overlap", OPTION_FLAG, &r->allow_overlap, 0, 0, "held-out questions may be trained on", 1, 0},
        {"out", OPTION_TEXT, &r->out, 0, 0, "directory for checkpoint and metrics.csv", 0, 0},
        {"resume", OPTION_TEXT, &r->resume, 0, 0, "directory of a run to go on with", 0, 0},
        {"batch-size", OPTION_INT, &o->batch_size, 1, 1e6, "pairs per update", 1, 0},
        {"num-epochs", OPTION_INT, &r->num_epochs, 1, 1e6, "passes over the pairs", 1, 0},
        {"num-steps", OPTION_INT, &r->num_steps, 0, 1e9, "updates; 0 = as num-epochs says", 1, 0},
        {"lr", OPTION_FLOAT, &r->lr, 0, 10, "learning rate at its highest; it falls to 0", 1, 0},
        {"warmup-steps", OPTION_INT, &o->warmup_steps, 0, 1e9, "updates in which it rises", 1, 0},
        {"weight-decay", OPTION_FLOAT, &r->adam.weight_decay, 0, 10, "AdamW: decay of matrices", 1, 0},
        {"grad-clip", OPTION_FLOAT, &r->grad_clip, 0, 1e9, "longest gradient norm; 0 = any", 1, 0},
        {"save-every", OPTION_INT, &r->save_every, 0, 1e9, "updates between saves; 0 = at the end", 0, 0},
        {"log-every", OPTION_INT, &r->log_every, 1, 1e9, "updates per printed line", 0, 0},
    };
    Option own[2][2] = {
        {{"beta", OPTION_FLOAT, &r->beta, 1e-6, 1e3, "price of a nat of drift", 1, 0},
         {"reference", OPTION_TEXT, &r->reference, 0, 0, "reference model; none = the one to start from", 1,
          0}},
        {{"loss", OPTION_TEXT, &o->loss, 0, 0, "bradley-terry or outcome", 1, 0},
         {"eval-questions", OPTION_TEXT, &o->eval_questions, 0, 0, "questions of held-out pairs", 1, 0}},
    };
    memcpy(t, own[c->scalar], sizeof own[0]);
    memcpy(t + 2, table, sizeof table);
}

static const PairLoss* find_pair_loss(const char* name, const PairCommand* c) {
    for (size_t i = 0; i < sizeof pair_losses / sizeof *pair_losses; i++)
        if (!strcmp(name, pair_losses[i].name) && pair_losses[i].scalar == c->scalar) return &pair_losses[i];
    fail(2, "./rl %s has no loss '%s'; choose bradley-terry or outcome", c->name, name);
}

// Samples answers to the questions of a file and judges them. `made` is the number of the file: its random
// numbers are its own.
static Pairs make_pairs(Model* m, const char* path, const PairOptions* o, float noise, int most, int made) {
    const RlOptions* r = &o->rl;
    uint64_t seed = r->seed + 4 + 2 * (uint64_t)made;
    Questions q = load_questions(path, m->config.context, r->sample.max_new_tokens);
    PairRules rules = {find_judge(o->judge), find_reward(r->reward), o->per_question, noise, seed + 1};
    Pairs p = {0};
    int used = 0;
    printf("%s: %d answers to each of %d questions\n  judge: %s\n", path, r->num_samples, q.count,
           rules.judge->what);
    fflush(stdout);
    Rollout* all = answer_all_questions(m, &q, r->num_samples, r->sample, seed);
    for (int i = 0; i < q.count; i++) {
        int before = p.count;
        judge_pairs(&p, &q.list[i], i, all + (size_t)i * r->num_samples, r->num_samples, &rules);
        used += p.count > before;
    }
    if (!p.count)
        fail(2, "no pair could be made from %s: the answers to each question all have the same score; try "
                "more --num-samples or another --judge", path);
    limit_pairs(&p, most, rules.seed);
    printf("  %d pairs, from %d questions that have answers of both kinds\n", p.count, used);
    rollouts_free(all, q.count * r->num_samples), questions_free(&q);
    return p;
}

static void write_pairs(const char* path, const Pairs* p) {
    char folder[PATH_SIZE];
    const char* name = out_file(folder, path);
    Text text = {0};
    pairs_to_json(&text, p);
    write_file(folder, name, &text);
    text_free(&text);
}

static int command_pairs(int argc, char** argv) {
    PairOptions o = pair_defaults(&pair_commands[1]);
    Option options[RL_OPTIONS] = {{0}};
    char folder[PATH_SIZE];
    o.rl.out = NULL;
    int n = sampling_options(options, &o.rl);
    n += judging_options(options + n, &o, "data");
    options[n] = (Option){"out", OPTION_TEXT, &o.rl.out, 0, 0, "file to write the pairs to", 0, 0};
    if (asked_for_help(argc, argv, "pairs - samples answers, judges them, writes who beats whom",
                       "./rl pairs --out FILE [--option=value ...]", options))
        return 0;
    parse_options(options, argc, argv, NULL, 0);
    if (!o.rl.out) fail(2, "a file is missing: ./rl pairs --out out/pairs.jsonl");
    check_sampling(&o.rl), find_judge(o.judge), find_reward(o.rl.reward);
    set_threads(o.rl.threads);
    Model m = load_tagged_model(o.rl.model);
    out_file(folder, o.rl.out);
    Pairs p = make_pairs(&m, o.questions, &o, o.noise, o.most_pairs, 0);
    write_pairs(o.rl.out, &p);
    printf("wrote %s\n", o.rl.out);
    pairs_free(&p), model_free(&m);
    return 0;
}

// Makes the files of pairs that are missing, and writes their names into the options: a resumed run then
// reads the same pairs. Held-out pairs are judged without noise, and none is left out.
static void make_missing_pairs(Model* policy, PairOptions* o, const PairCommand* c) {
    static char path[2][PATH_SIZE];
    static const char* const names[2] = {"pairs.jsonl", "held_out.jsonl"};
    const char** file[2] = {&o->rl.data, &o->rl.eval_data};
    const char* const questions[2] = {o->questions, o->eval_questions};
    int missing[2];
    for (int i = 0; i < 2; i++) missing[i] = !(*file[i] && **file[i]) && (i == 0 || c->scalar);
    if (missing[0] && missing[1]) check_apart(o->questions, o->eval_questions, o->rl.allow_overlap);
    if (missing[0] || missing[1]) check_folder_name(o->rl.out);
    for (int i = 0; i < 2; i++) {
        if (!missing[i]) continue;
        Pairs p = make_pairs(policy, questions[i], o, i ? 0.0f : o->noise, i ? 0 : o->most_pairs, i);
        join_path(path[i], o->rl.out, names[i]);
        write_pairs(path[i], &p);
        printf("  wrote %s\n", path[i]);
        *file[i] = path[i];
        pairs_free(&p);
    }
}

// The questions of pairs, as problems without an answer; only .list is to be freed.
static Problems questions_of(const Pairs* p) {
    Problems q = {allocate((size_t)p->count, sizeof(Problem)), p->count};
    for (int i = 0; i < p->count; i++) q.list[i].question = p->list[i].question;
    return q;
}

#define PAIR_HEADER "step,loss,margin,accuracy,chosen,rejected,lr,grad_norm,seconds"

static void add_pair_metrics(PairMetrics* sum, const PairMetrics* s) {
    sum->loss += s->loss, sum->margin += s->margin, sum->accuracy += s->accuracy, sum->chosen += s->chosen;
    sum->rejected += s->rejected, sum->grad_norm += s->grad_norm, sum->seconds += s->seconds;
}

// The whole run, from update `step` on. Returns 0, or 130 after Ctrl-C.
static int train_on_pairs(Model* m, Optimizer* optimizer, Pairs* p, const PairOptions* o,
                          const PairCommand* c, const Option* options, long step) {
    const RlOptions* r = &o->rl;
    const PairLoss* loss = find_pair_loss(o->loss, c);
    int per_epoch = (p->count + o->batch_size - 1) / o->batch_size, n = 0;
    long steps = r->num_steps ? r->num_steps : (long)r->num_epochs * per_epoch;
    Deck deck = deck_new(p->count, r->seed);
    int* chosen = allocate((size_t)o->batch_size, sizeof(int));
    Pair** batch = allocate((size_t)o->batch_size, sizeof(Pair*));
    PairMetrics sum = {0};
    char how[64];
    Run run = run_begin(r->out, r->resume, PAIR_HEADER, step, steps, r->log_every, r->save_every);
    printf("%s: %ld updates of %d of %d pairs\n  loss: %s\n", c->name, steps, o->batch_size, p->count,
           loss->what);
    printf("%6s %8s %8s %8s %8s %8s %8s %6s\n", "update", "loss", "margin", "accuracy", "chosen", "rejected",
           "|grad|", "s");
    while (run_goes_on(&run)) {
        float lr = r->lr * (float)lr_schedule(run.step, steps, o->warmup_steps, 0.0);
        deck_deal(chosen, &deck, run.step, o->batch_size);
        for (int i = 0; i < o->batch_size; i++) batch[i] = &p->list[chosen[i]];
        PairMetrics s = pairs_step(m, optimizer, batch, o->batch_size, loss, r->beta, lr, r->grad_clip,
                                   r->adam);
        run_count(&run, s.loss, s.grad_norm);
        fprintf(run.metrics, "%ld,%.9g,%.9g,%.6g,%.9g,%.9g,%.9g,%.9g,%.4f\n", run.step - 1, s.loss, s.margin,
                s.accuracy, s.chosen, s.rejected, (double)lr, s.grad_norm, s.seconds);
        add_pair_metrics(&sum, &s), n++;
        if (run_logs(&run)) {
            printf("%6ld %8.4f %8.3f %8.3f %8.2f %8.2f %8.3f %6.2f\n", run.step, sum.loss / n, sum.margin / n,
                   sum.accuracy / n, sum.chosen / n, sum.rejected / n, sum.grad_norm / n, sum.seconds / n);
            fflush(stdout);
            sum = (PairMetrics){0}, n = 0;
        }
        if (run_saves(&run)) save_run(r->out, c->name, options, run.step, m, optimizer, NULL, NULL);
    }
    free(deck.order), free(chosen), free(batch);
    snprintf(how, sizeof how, "./rl %s", c->name);
    return run_end(&run, how, r->out);
}

static void print_pair_evaluation(const PairEvaluation* e, const char* path) {
    double width = (1.0 - e->from) / CALIBRATION_BINS;
    printf("\n%s: %d pairs of %d questions\n\n", path, e->pairs, e->questions);
    printf("  ranked right   %6.4f   95%% interval %.4f to %.4f\n\n", e->accuracy, e->low, e->high);
    if (e->from > 0) printf("  Chance of the predicted winner, and how often it won:\n\n");
    else printf("  Chance that an answer is right, and how often it was the chosen one:\n\n");
    printf("  %11s %8s %10s %10s\n", "called", e->from > 0 ? "pairs" : "answers", "predicted", "observed");
    for (int b = 0; b < CALIBRATION_BINS; b++) {
        printf("  %.1f to %.1f  %8d", e->from + b * width, e->from + (b + 1) * width, e->count[b]);
        if (e->count[b]) printf(" %10.4f %10.4f\n", e->predicted[b], e->observed[b]);
        else printf(" %10s %10s\n", "-", "-");
    }
    printf("\n  expected calibration error  %6.4f\n\n", e->error);
}

// The pairs to train on and, if there are any, those held out; no question may be in both.
static void load_both(Pairs* list, const RlOptions* o, int context) {
    const char* const path[2] = {o->data, o->eval_data};
    if (!path[0] || !*path[0]) fail(2, "a file of pairs is missing: --data FILE");
    for (int i = 0; i < 2; i++) {
        if (!path[i] || !*path[i]) continue;
        list[i] = load_pairs(path[i]);
        render_pairs(&list[i], context, path[i]);
    }
    if (!list[1].count) return;
    Problems a = questions_of(&list[0]), b = questions_of(&list[1]);
    refuse_overlap(&a, &b, path[0], path[1], "", o->allow_overlap);
    free(a.list), free(b.list);
}

// The reference of DPO's pairs: that of --reference, or an empty model for the one that the run started from.
static Model load_other_reference(const Model* m, const Model* start, const RlOptions* o) {
    int named = o->reference && *o->reference;
    Model other = named ? load_tagged_model(o->reference) : (Model){0};
    if (memcmp(named ? &other.config : &start->config, &m->config, sizeof(Config)))
        fail(2, "the reference model %s has other sizes than the policy; DPO compares a model with its own "
                "beginning", named ? o->reference : o->model);
    return other;
}

// Whoever gives a file that cannot be read is to be told before minutes go into making another.
static void check_given_pairs(const RlOptions* o) {
    const char* const path[2] = {o->data, o->eval_data};
    for (int i = 0; i < 2; i++) {
        if (!path[i] || !*path[i]) continue;
        Pairs p = load_pairs(path[i]);
        pairs_free(&p);
    }
}

// How pairs are to be made, when none are. A resumed run makes none either, but it may be called with the
// same words as the first time.
static void refuse_idle_making(const PairOptions* o, const PairCommand* c, const Option* options) {
    const RlOptions* r = &o->rl;
    int reads = r->data && *r->data, reads_held_out = !c->scalar || (r->eval_data && *r->eval_data);
    if (r->resume) return;
    if (reads && reads_held_out)
        refuse_idle(options, (const char* const[]){"reward", "num-samples", "max-new-tokens", "temperature",
                                                   "top-k", "top-p", "judge", "pairs-per-question", NULL},
                    "no answers are sampled; the pairs are in files");
    if (reads)
        refuse_idle(options, (const char* const[]){"questions", "pairs", "noise", NULL},
                    "the pairs to train on are in a file");
    if (reads_held_out)
        refuse_idle(options, (const char* const[]){"eval-questions", NULL},
                    "the held-out pairs are in a file");
}

static int run_on_pairs(PairOptions* o, const PairCommand* c, Option* options) {
    RlOptions* r = &o->rl;
    long step = r->resume ? state_from_json(r->resume, c->name, options) : 0;
    if (r->resume && r->out == c->out) r->out = r->resume;
    check_sampling(r), find_judge(o->judge);
    refuse_idle_making(o, c, options);
    const PairLoss* loss = find_pair_loss(o->loss, c);
    refuse_overwriting(r->out, (const char* const[]){r->model, r->reference}, 2);
    set_threads(r->threads);
    Model m, start = {0};            // in a resumed run needed as DPO's reference only
    if (!r->resume || !c->scalar) start = load_tagged_model(r->model);
    if (r->resume) m = c->scalar ? load_reward_model(r->resume, 0) : load_fitting_model(r->resume);
    else m = c->scalar ? scalar_model_on(&start) : load_tagged_model(r->model);
    Model other = c->scalar ? (Model){0} : load_other_reference(&m, &start, r);
    if (!r->resume) check_given_pairs(r), make_missing_pairs(&start, o, c);
    Pairs list[2] = {{0}};                                         // to train on, held out
    load_both(list, r, m.config.context);
    for (int i = 0; i < 2; i++)
        if (!c->scalar && list[i].count)
            set_reference(&list[i], other.weights.memory ? &other : &start, loss);
    model_free(&start), model_free(&other);
    Optimizer optimizer = r->resume ? load_optimizer(r->resume, &m.config, step) : optimizer_new(&m.config);
    int status = train_on_pairs(&m, &optimizer, &list[0], o, c, options, step);
    if (!status && list[1].count) {
        PairEvaluation e = evaluate_pairs(&m, &list[1], loss, r->beta);
        print_pair_evaluation(&e, r->eval_data);
    }
    if (!status) printf("saved %s\n", r->out);
    pairs_free(&list[0]), pairs_free(&list[1]), optimizer_free(&optimizer), model_free(&m);
    return status;
}

static int command_on_pairs(int argc, char** argv, const PairCommand* c) {
    PairOptions o = pair_defaults(c);
    Option options[RL_OPTIONS] = {{0}};
    char usage[80];
    int n = sampling_options(options, &o.rl);
    n += judging_options(options + n, &o, "questions");
    preference_options(options + n, &o, c);
    snprintf(usage, sizeof usage, "./rl %s [--data FILE] [--option=value ...]", c->name);
    if (asked_for_help(argc, argv, c->what, usage, options)) return 0;
    parse_options(options, argc, argv, NULL, 0);
    return run_on_pairs(&o, c, options);
}

static int command_reward_model(int argc, char** argv) {
    return command_on_pairs(argc, argv, &pair_commands[0]);
}
static int command_dpo(int argc, char** argv) { return command_on_pairs(argc, argv, &pair_commands[1]); }

// ---- ./rl best-of-n

static int find_keep_rule(const char* name) {
    for (int i = 0; i < KEEP_RULES; i++) if (!strcmp(name, keep_names[i])) return i;
    fail(2, "there is no rule '%s' to keep answers; choose prompt, overall or random", name);
}

// Samples, scores and keeps; writes the kept answers to OUT/kept.jsonl.
static void write_kept(Model* m, const RlOptions* o, int rule) {
    Questions q = load_questions(o->data, m->config.context, o->sample.max_new_tokens);
    int K = o->num_samples, n = q.count * K, questions = 0;
    double mean = 0.0, kept_mean = 0.0;
    char path[PATH_SIZE];
    Model judge;
    Reward reward = read_reward(o->reward, path);
    if (*path) judge = load_reward_model(path, m->config.context), reward.model = &judge;
    check_folder_name(o->out);
    printf("%s: %d answers to each of %d questions\n", o->data, K, q.count);
    fflush(stdout);
    Rollout* all = answer_all_questions(m, &q, K, o->sample, o->seed + 4);
    float* score = allocate((size_t)n, sizeof(float));
    char** answer = allocate((size_t)n, sizeof(char*));
    int* kept = allocate((size_t)n, sizeof(int));
    int* index = allocate((size_t)q.count, sizeof(int));
    Group* group = allocate((size_t)q.count, sizeof(Group));
    for (int i = 0; i < q.count; i++) index[i] = i;
    reward_rollouts(score, group, &reward, o, &q, index, all, q.count);
    float above = reward.verified ? 0.0f : -INFINITY;    // a score of 0 means wrong only to a verifier
    if (reward.model) model_free(&judge);
    free(index), free(group);
    for (int i = 0; i < n; i++) {
        mean += score[i] / (double)n;
        answer[i] = rollout_answer(&all[i], &q.list[i / K]);
        if (!answer[i]) score[i] = (float)NAN;
    }
    int M = keep_answers(kept, score, q.count, K, rule, above, o->seed + 5);
    if (!M && reward.verified)
        fail(2, "no answer to a question of %s has a reward above 0; try more --num-samples", o->data);
    if (!M)
        fail(2, "no answer to a question of %s came to its end; try more --max-new-tokens than %d", o->data,
             o->sample.max_new_tokens);
    Text text = {0};
    for (int i = 0; i < M; i++) {
        text_printf(&text, "{\"question\": "), json_append_string(&text, q.list[kept[i] / K].question);
        text_printf(&text, ", \"answer\": "), json_append_string(&text, answer[kept[i]]);
        text_printf(&text, "}\n");
        kept_mean += score[kept[i]] / (double)M;
        questions += i == 0 || kept[i] / K != kept[i - 1] / K;
    }
    make_folder(o->out);
    write_file(o->out, "kept.jsonl", &text);
    printf("  of %d answers, mean reward %.3f, %d are kept (%s):\n  mean reward %.3f, answers to %d "
           "questions; wrote %s/kept.jsonl\n\n", n, mean, M, keep_names[rule], kept_mean, questions, o->out);
    for (int i = 0; i < n; i++) free(answer[i]);
    text_free(&text), rollouts_free(all, n), free(score), free(answer), free(kept), questions_free(&q);
}

static int command_best_of_n(int argc, char** argv) {
    RlOptions o = rl_defaults();
    TrainOptions t = train_defaults();
    Option options[RL_OPTIONS] = {{0}}, sft_options[TRAIN_OPTIONS] = {{0}};
    const char *keep = keep_names[KEEP_PROMPT], *from = NULL;
    char model[PATH_SIZE], kept[PATH_SIZE];
    o.out = "out/best", t.steps = 150, t.lr = 5e-4f;
    int n = sampling_options(options, &o);
    Option table[] = {
        {"data", OPTION_TEXT, &o.data, 0, 0, "questions to sample answers to", 0, 0},
        {"keep", OPTION_TEXT, &keep, 0, 0, "prompt, overall, or random (the control)", 0, 0},
        {"from", OPTION_TEXT, &from, 0, 0, "model to train, if not the one that answers", 0, 0},
        {"out", OPTION_TEXT, &o.out, 0, 0, "for kept.jsonl and the checkpoint", 0, 0},
        {"steps", OPTION_INT, &t.steps, 1, 1e9, "updates on the kept answers", 0, 0},
        {"batch-size", OPTION_INT, &t.batch_size, 1, 1e6, "answers per update", 0, 0},
        {"lr", OPTION_FLOAT, &t.lr, 0, 10, "learning rate at its highest", 0, 0},
        {"log-every", OPTION_INT, &t.log_every, 1, 1e9, "updates between printed lines", 0, 0},
    };
    memcpy(options + n, table, sizeof table);
    if (asked_for_help(argc, argv, "best-of-n - samples answers, keeps the best, trains on them",
                       "./rl best-of-n [--option=value ...]", options))
        return 0;
    parse_options(options, argc, argv, NULL, 0);
    check_sampling(&o);
    int rule = find_keep_rule(keep);
    set_threads(o.threads);
    Model m = load_tagged_model(o.model);
    tagged_path(model, from ? from : o.model);
    refuse_overwriting(o.out, (const char* const[]){model}, 1);
    write_kept(&m, &o, rule);
    model_free(&m);
    join_path(kept, o.out, "kept.jsonl");
    t.data = kept, t.model = model, t.out = o.out, t.seed = o.seed, t.threads = o.threads;
    train_options(sft_options, &t);
    return train(&t, sft_options, NULL);
}

// ---- ./rl eval

static void print_pass_rates(const Evaluation* e) {
    const char* first = e->samples == 1 ? "accuracy" : "pass@1";
    for (int k = 1; k; k = next_k(k, 2, e->samples)) {
        char name[24];
        snprintf(name, sizeof name, "pass@%d", k);
        printf("  %-10s   %6.4f   95%% interval %.4f to %.4f\n", k == 1 ? first : name, e->pass[k - 1],
               e->low[k - 1], e->high[k - 1]);
    }
}

static void print_evaluation(const Evaluation* e, const char* reward) {
    printf("%d questions x %d samples, reward %s\n\n", e->questions, e->samples, reward);
    print_pass_rates(e);
    printf("  tool used    %6.4f   of the rollouts\n  format       %6.4f   of the rollouts end as the reward "
           "wants it\n  length       %6.1f   tokens per rollout\n",
           e->tool_rate, e->format_rate, e->length);
}

static int command_eval(int argc, char** argv) {
    RlOptions o = rl_defaults();
    o.model = "out/run/rl";
    Option options[RL_OPTIONS] = {{0}};
    o.eval_examples = 256;
    evaluation_options(options + sampling_options(options, &o), &o);
    if (asked_for_help(argc, argv, "eval - pass@k on held-out questions", "./rl eval [--option=value ...]",
                       options))
        return 0;
    parse_options(options, argc, argv, NULL, 0);
    check_sampling(&o);
    set_threads(o.threads);
    const RewardKind* kind = find_reward(o.reward);
    Model m = load_tagged_model(o.model);
    Questions q = load_questions(o.eval_data, m.config.context, o.sample.max_new_tokens);
    Evaluation e = evaluate_model(&m, &q, o.eval_examples, o.num_samples, o.sample, kind, NULL, o.seed + 2);
    print_evaluation(&e, o.reward);
    evaluation_free(&e), questions_free(&q), model_free(&m);
    return 0;
}

// ---- ./rl vote: many answers instead of training

typedef struct {                 // of a ladder of 1, 2, 4, ... votes; sums over the questions, then means
    int votes;
    double right, squares;       // share of right votes, and its square
    double low, high;            // 95% interval of the share
    double none, lenient;        // share without any vote; share of right votes when read leniently
} Rung;

enum { RUNGS = 16 };             // 1, 2, 4, ... 4096 are 13

typedef struct {
    Rung rung[RUNGS];
    int rungs;
    Evaluation pass;             // of the same answers
    double prompt;               // tokens of a question's prompt, the mean
    double seconds;              // that sampling took, all questions together
} Ladder;

// What each of K rollouts votes for: the answer in the rewarded format, "" = none. A lenient vote then takes
// a box or the last number instead, as a person would who reads the answer.
static void read_votes(char** strict, char** lenient, const Rollout* r, int K, const RewardKind* kind) {
    char answer[MAX_ANSWER + 1];
    for (int k = 0; k < K; k++) {
        Text text = rollout_text(&r[k]);
        int found = kind->format(text.data, answer, sizeof answer);
        strict[k] = copy_text(found ? answer : "");
        int how = found ? 1 : extract_lenient(text.data, answer, sizeof answer);
        lenient[k] = copy_text(how == 1 || how == 2 ? answer : "");                 // 3 is the whole text
        text_free(&text);
    }
}

static void vote_on_question(Ladder* l, const Rollout* r, int K, const char* truth, const RewardKind* kind) {
    char **strict = allocate((size_t)K, sizeof(char*)), **lenient = allocate((size_t)K, sizeof(char*));
    read_votes(strict, lenient, r, K, kind);
    for (Rung* rung = l->rung; rung < l->rung + l->rungs; rung++) {
        double none, right = vote_accuracy(&none, (const char* const*)strict, K, rung->votes, truth);
        rung->right += right, rung->squares += right * right, rung->none += none;
        rung->lenient += vote_accuracy(&none, (const char* const*)lenient, K, rung->votes, truth);
    }
    for (int k = 0; k < K; k++) free(strict[k]), free(lenient[k]);
    free(strict), free(lenient);
}

// Samples K answers to each of the first `count` questions, as evaluate_model() does, and lets them vote.
static Ladder climb_ladder(Model* m, const Questions* q, const RlOptions* o) {
    int K = o->num_samples, count = min_int(o->eval_examples, q->count), together = max_int(1, EVAL_ROWS / K);
    const RewardKind* kind = find_reward(o->reward);
    Ladder l = {.pass = evaluation_new(K)};
    for (int k = 1; k; k = next_k(k, 2, K)) l.rung[l.rungs++].votes = k;
    float* reward = allocate((size_t)K, sizeof(float));
    for (int from = 0; from < count; from += together) {
        int B = min_int(together, count - from);
        double begin = seconds_now();
        Rollout* r = answer_questions(m, q, from, B, K, o->sample, o->seed + 2);
        l.seconds += seconds_now() - begin;
        for (int i = 0; i < B; i++) {
            const Question* question = &q->list[from + i];
            Group g = judge_group(reward, r + (size_t)i * K, K, question->truth, kind);
            evaluation_add(&l.pass, K, g.right);
            vote_on_question(&l, r + (size_t)i * K, K, question->truth, kind);
            l.pass.length += (double)g.tokens, l.prompt += question->prompt.length;
        }
        rollouts_free(r, B * K);
    }
    evaluation_finish(&l.pass);
    l.pass.length /= (double)count * K, l.prompt /= count;
    for (Rung* rung = l.rung; rung < l.rung + l.rungs; rung++) {
        int tries = rung->votes > 1 ? K / rung->votes : 0;       // as for pass@k
        rung->right = mean_rate(&rung->low, &rung->high, rung->right, rung->squares, count, tries);
        rung->none /= count, rung->lenient /= count;
    }
    free(reward);
    return l;
}

// Tokens of one question that go through the model for so many votes: the prompt once, and the answers.
static double model_tokens(const Ladder* l, int votes) { return l->prompt + votes * l->pass.length; }

static double rung_seconds(const Ladder* l, const Rung* rung) {
    return l->seconds / l->pass.questions * model_tokens(l, rung->votes) / model_tokens(l, l->pass.samples);
}

static void print_ladder(const Ladder* l, const char* reward) {
    const Rung *first = l->rung, *last = l->rung + l->rungs - 1;
    printf("%d questions x %d samples, reward %s\n\n", l->pass.questions, l->pass.samples, reward);
    printf("  votes accuracy  95%% interval no vote lenient  pass@n   tokens      ms   cost\n");
    for (const Rung* rung = first; rung <= last; rung++)
        printf("%7d %8.4f %.4f-%.4f %7.1f %7.4f %7.4f %8.1f %7.2f %6.2f\n", rung->votes, rung->right,
               rung->low, rung->high, rung->none * l->pass.questions, rung->lenient,
               l->pass.pass[rung->votes - 1], rung->votes * l->pass.length, 1e3 * rung_seconds(l, rung),
               model_tokens(l, rung->votes) / model_tokens(l, 1));
    printf("\n"
           "  accuracy  of the majority; mean over all disjoint groups of so many samples\n"
           "  no vote   questions without any answer in the rewarded format, which count as\n"
           "            wrong; mean over the groups\n"
           "  lenient   accuracy if answers outside the format vote too: with their box or\n"
           "            else their last number\n"
           "  pass@n    at least one of so many answers is rewarded: a perfect choice, no vote\n"
           "  tokens    generated for a question\n"
           "  ms        for a question: a share of the %.2f s that sampling took. Not\n"
           "            measured by itself, but in proportion to the tokens through the\n"
           "            model: the prompt, %.1f of them, once, and the answers\n"
           "  cost      tokens through the model, in units of one vote\n",
           l->seconds, l->prompt);
    if (last == first) return;
    printf("\n%d votes instead of one: accuracy %.4f -> %.4f, cost x %.1f.\n", last->votes, first->right,
           last->right, model_tokens(l, last->votes) / model_tokens(l, 1));
}

static void append_ladder(Text* csv, const Ladder* l) {
    text_printf(csv, "votes,accuracy,low,high,pass_at_n,tokens,seconds\n");
    for (const Rung* rung = l->rung; rung < l->rung + l->rungs; rung++)
        text_printf(csv, "%d,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g\n", rung->votes, rung->right, rung->low,
                    rung->high, l->pass.pass[rung->votes - 1], rung->votes * l->pass.length,
                    rung_seconds(l, rung));
}

static int command_vote(int argc, char** argv) {
    RlOptions o = rl_defaults();
    Option options[RL_OPTIONS] = {{0}};
    char folder[PATH_SIZE];
    const char* out = NULL;
    Text csv = {0};
    o.eval_examples = 256;
    int n = sampling_options(options, &o);
    evaluation_options(options + n, &o);
    while (options[n].name) n++;
    options[n] = (Option){"out", OPTION_TEXT, &out, 0, 0, "CSV file for the table", 0, 0};
    if (asked_for_help(argc, argv, "vote - the majority of many answers: what is gained without training",
                       "./rl vote [--option=value ...]", options))
        return 0;
    parse_options(options, argc, argv, NULL, 0);
    check_sampling(&o);
    set_threads(o.threads);
    Model m = load_tagged_model(o.model);
    Questions q = load_questions(o.eval_data, m.config.context, o.sample.max_new_tokens);
    if (out) out_file(folder, out);
    Ladder l = climb_ladder(&m, &q, &o);
    print_ladder(&l, o.reward);
    append_ladder(&csv, &l);
    if (out) write_out_file(out, &csv);
    text_free(&csv);
    evaluation_free(&l.pass), questions_free(&q), model_free(&m);
    return 0;
}

// ---- ./rl elicit: pass@k before and after

// solved[0..3]: how many questions had a right answer from neither, only before, only after, from both.
static void count_solved(int solved[4], const Evaluation* before, const Evaluation* after) {
    memset(solved, 0, 4 * sizeof(int));
    for (int i = 0; i < before->questions; i++) solved[(before->right[i] > 0) + 2 * (after->right[i] > 0)]++;
}

// 1 = up, -1 = down, 0 = not beyond its interval
static int sign_of_change(const Evaluation* before, const Evaluation* after, int k) {
    double low, high;
    pass_difference(&low, &high, before, after, k);
    return low > 0.0 ? 1 : high < 0.0 ? -1 : 0;
}

static void append_change(Text* out, const Evaluation* before, const Evaluation* after, int k) {
    static const char* const words[3] = {"down", "unchanged within its interval", "up"};
    text_printf(out, "pass@%d is %s. ", k, words[sign_of_change(before, after, k) + 1]);
}

// Each sentence follows from the numbers. solved (4): see count_solved().
static void append_reading(Text* out, const Evaluation* before, const Evaluation* after, const int* solved) {
    static const char* const readings[3] = {
        "So training made one answer better and many answers worse: sharper, and narrower. ",
        "So training made frequent what the model before could find as well: it elicited. ",
        "So training solves what as many answers before did not: more than eliciting. "};
    int K = before->samples, cross = curves_cross(before->pass, after->pass, K), equal = 1;
    append_change(out, before, after, 1);
    while (equal <= K && before->pass[equal - 1] < after->pass[0]) equal++;
    if (equal > K && K > 1) text_printf(out, "Even %d answers before find less than one after. ", K);
    else if (equal > 1 && equal <= K) text_printf(out, "One answer after is worth %d before. ", equal);
    if (K > 1) append_change(out, before, after, K);
    if (!cross) text_printf(out, "The curves do not cross. ");
    else text_printf(out, "The curves cross: from k = %d on, %s is ahead. ", cross,
                     before->pass[cross - 1] > after->pass[cross - 1] ? "before" : "after");
    if (sign_of_change(before, after, 1) <= 0) text_printf(out, "There is no gain in pass@1 to explain. ");
    else if (K > 1) text_printf(out, "%s", readings[sign_of_change(before, after, K) + 1]);
    text_printf(out, "At k = %d the model before left %d of %d questions unsolved: only on these could "
                     "training show something new.",
                K, solved[0] + solved[2], before->questions);
}

static void print_elicitation(const Evaluation* before, const Evaluation* after) {
    static const char* const names[4] = {"by neither", "only before", "only after", "by both"};
    int K = before->samples, solved[4];
    double low, high, *ks = allocate((size_t)K, sizeof(double));
    Text reading = {0};
    printf("\n    k   before  95%% interval    after  95%% interval   change  95%% interval\n");
    for (int k = 1; k; k = next_k(k, 4, K)) {
        double difference = pass_difference(&low, &high, before, after, k);
        printf("%5d %8.4f %.4f-%.4f %8.4f %.4f-%.4f %+8.4f %+.4f to %+.4f\n", k, before->pass[k - 1],
               before->low[k - 1], before->high[k - 1], after->pass[k - 1], after->low[k - 1],
               after->high[k - 1], difference, low, high);
    }
    count_solved(solved, before, after);
    printf("\nQuestions of which at least one of %d answers is right:\n\n", K);
    for (int i = 3; i >= 0; i--) printf("  %-12s %6d\n", names[i], solved[i]);
    for (int k = 1; k <= K; k++) ks[k - 1] = k;
    printf("\n");
    print_plot(&(Plot){.title = "pass@k", .x_name = "k answers to a question", .x = ks,
                       .y = {before->pass, after->pass}, .names = {"before", "after"}, .series = 2,
                       .points = K, .log_x = 1});
    append_reading(&reading, before, after, solved);
    printf("\nReading, from these numbers:\n\n");
    print_wrapped("", reading.data);
    text_free(&reading), free(ks);
}

static void append_elicitation(Text* csv, const Evaluation* before, const Evaluation* after) {
    double low, high;
    text_printf(csv, "k,before,before_low,before_high,after,after_low,after_high,difference,difference_low,"
                     "difference_high\n");
    for (int k = 1; k <= before->samples; k++) {
        double difference = pass_difference(&low, &high, before, after, k);
        text_printf(csv, "%d,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g\n", k, before->pass[k - 1],
                    before->low[k - 1], before->high[k - 1], after->pass[k - 1], after->low[k - 1],
                    after->high[k - 1], difference, low, high);
    }
}

static int command_elicit(int argc, char** argv) {
    static const char* const when[2] = {"before", "after"};
    RlOptions o = rl_defaults();
    const char *tag[2] = {"out/run/sft", "out/run/rl"}, *out = NULL;
    Option options[RL_OPTIONS] = {{"before", OPTION_TEXT, &tag[0], 0, 0, "the model before training", 0, 0}};
    char folder[PATH_SIZE];
    Text csv = {0};
    o.num_samples = 256;
    int n = 1 + sampling_options(options + 1, &o);
    evaluation_options(options + n, &o);
    while (options[n].name) n++;
    options[n] = (Option){"out", OPTION_TEXT, &out, 0, 0, "CSV file for the two curves", 0, 0};
    for (Option* t = options; t->name; t++) {
        if (!strcmp(t->name, "model-tag")) t->name = "after", t->value = &tag[1], t->help = "and after it";
        if (!strcmp(t->name, "num-samples")) t->name = "samples", t->help = "answers to each question";
    }
    if (asked_for_help(argc, argv, "elicit - pass@k before and after: did training teach, or only elicit?",
                       "./rl elicit [--option=value ...]", options))
        return 0;
    parse_options(options, argc, argv, NULL, 0);
    check_sampling(&o);
    set_threads(o.threads);
    Model m[2] = {load_tagged_model(tag[0]), load_tagged_model(tag[1])};
    Questions q = load_questions(o.eval_data, min_int(m[0].config.context, m[1].config.context),
                                 o.sample.max_new_tokens);
    Evaluation e[2];
    if (out) out_file(folder, out);
    printf("%d questions x %d samples, reward %s\n", min_int(o.eval_examples, q.count), o.num_samples,
           o.reward);
    for (int i = 0; i < 2; i++) {
        double begin = seconds_now();
        printf("  %-6s  %s", when[i], tag[i]), fflush(stdout);
        e[i] = evaluate_model(&m[i], &q, o.eval_examples, o.num_samples, o.sample, find_reward(o.reward),
                              NULL, o.seed + 2);
        printf("  %.1f s\n", seconds_now() - begin);
    }
    print_elicitation(&e[0], &e[1]);
    append_elicitation(&csv, &e[0], &e[1]);
    if (out) write_out_file(out, &csv);
    text_free(&csv);
    for (int i = 0; i < 2; i++) evaluation_free(&e[i]), model_free(&m[i]);
    questions_free(&q);
    return 0;
}

// ---- ./rl overlap

enum { OVERLAP_EXAMPLES = 3, OVERLAP_LINES = 4 };   // pairs of each kind, lines of each question

static void print_pair(const Match* match, const Problems* a, const Problems* b, int i) {
    printf("\n  question %d of B, question %d of A", i + 1, match->twin + 1);
    if (match->likeness == NEARLY_SAME)
        printf(": %.0f%% of its runs of %d words", 100.0 * match->share, GRAM_WORDS);
    printf("\n");
    print_beginning("    B", b->list[i].question, OVERLAP_LINES);
    if (match->likeness != SAME_TEXT) print_beginning("    A", a->list[match->twin].question, OVERLAP_LINES);
}

static int command_overlap(int argc, char** argv) {
    static const char* const names[LIKENESSES + 1] = {
        "the same, byte for byte", "the same without case, spaces, punctuation", "the same but for names",
        "the same but for names and numbers", "near: share half of all runs of 8 words", "none of these"};
    const char* path[2] = {NULL, NULL};
    Option options[] = {{0}};
    int count[LIKENESSES + 1] = {0};
    if (asked_for_help(argc, argv, "overlap - which questions of B also stand in A, exactly or nearly",
                       "./rl overlap A B", options))
        return 0;
    if (parse_options(options, argc, argv, path, 2) < 2)
        fail(2, "two files are needed: ./rl overlap data/train.jsonl data/test.jsonl");
    Problems a = load_problems(path[0]), b = load_problems(path[1]);
    Match* match = match_questions(&a, &b);
    for (int i = 0; i < b.count; i++) count[match[i].likeness]++;
    printf("A  %s: %d questions\nB  %s: %d questions\n\n", path[0], a.count, path[1], b.count);
    printf("Each question of B, by the strictest likeness that it has with one of A:\n\n");
    for (int i = 0; i <= LIKENESSES; i++)
        printf("  %-44s %6d  %6.2f%%\n", names[i], count[i], 100.0 * count[i] / b.count);
    for (int likeness = SAME_TEXT; likeness < LIKENESSES; likeness++) {
        if (count[likeness]) printf("\n%s:\n", names[likeness]);
        for (int i = 0, shown = 0; i < b.count && shown < OVERLAP_EXAMPLES; i++)
            if (match[i].likeness == likeness) print_pair(&match[i], &a, &b, i), shown++;
    }
    free(match), problems_free(&a), problems_free(&b);
    return 0;
}

// ---- ./rl grade

typedef struct {
    const char *response, *answer;
    char* question;                   // what all responses to one question have in common, or NULL
    int line, number, found, right;   // line of the file, place in it; is it in the format, is it right
} Graded;

typedef struct { Graded* list; int count; Json* records; } Responses;

static void responses_free(Responses* r) {
    for (int i = 0; i < r->count; i++) free(r->list[i].question);
    free(r->list), json_free(r->records);
    *r = (Responses){0};
}

// The text that tells which question was answered: "question" or "problem", else "id"; NULL = none of them.
static char* question_of(const Json* record, const char* path) {
    const Json* id = json_get(record, question_field(record));
    Text text = {0};
    if (!id) id = json_get(record, "id");
    if (!id) return NULL;
    if (id->type == JSON_STRING) return copy_text(id->string);
    if (id->type != JSON_NUMBER)
        fail(2, "%s, line %d: the field \"%s\" is neither a text nor a number", path, record->line, id->key);
    text_printf(&text, "%.17g", id->number);
    return text.data;
}

static Responses load_responses(const char* path) {
    Responses r = {.records = load_records(path)};
    for (const Json* j = r.records->child; j; j = j->next) r.count++;
    if (!r.count)
        fail(2,
             "%s has no responses in it: lines like {\"response\": ..., \"answer\": ...}, or an array of "
             "them, were expected",
             path);
    r.list = allocate((size_t)r.count, sizeof(Graded));
    int i = 0;
    for (const Json* j = r.records->child; j; j = j->next, i++) {
        const Json* response = json_get(j, "response");
        if (!response) response = json_get(j, "prediction");
        if (!response)
            fail(2, "%s, line %d: neither a field \"response\" nor \"prediction\"", path, j->line);
        if (response->type != JSON_STRING)
            fail(2, "%s, line %d: the field \"%s\" is not a text", path, j->line, response->key);
        r.list[i] = (Graded){response->string, record_text(j, "answer", path), question_of(j, path), j->line,
                             i + 1, 0, 0};
    }
    return r;
}

static int compare_graded(const void* a, const void* b) {   // the responses to one question side by side
    const Graded *x = a, *y = b;
    int order = x->question && y->question ? strcmp(x->question, y->question) : !x->question - !y->question;
    return order ? order : x->number - y->number;
}

// The end of the group of responses that begins at `from`. A response without a question is on its own.
static int group_end(const Responses* r, int from) {
    int to = from + 1;
    const char* question = r->list[from].question;
    while (question && to < r->count && r->list[to].question && !strcmp(r->list[to].question, question)) to++;
    return to;
}

// The means over the questions; pass@k as far as every question has k responses. Sorts the responses.
static Evaluation evaluate_responses(int* longest, Responses* r) {
    int shortest = INT_MAX;
    *longest = 0;
    qsort(r->list, (size_t)r->count, sizeof(Graded), compare_graded);
    for (int from = 0, to; from < r->count; from = to) {
        to = group_end(r, from);
        shortest = min_int(shortest, to - from), *longest = max_int(*longest, to - from);
    }
    Evaluation e = evaluation_new(shortest);
    for (int from = 0, to; from < r->count; from = to) {
        int right = 0;
        to = group_end(r, from);
        for (int i = from; i < to; i++) right += r->list[i].right;
        evaluation_add(&e, to - from, right);
    }
    evaluation_finish(&e);
    return e;
}

static void print_share(const char* name, int count, int of, const char* what) {
    printf("  %-10s %6d   %6.4f%s\n", name, count, (double)count / of, what);
}

static void print_grades(Responses* r, const RewardKind* kind) {
    char answer[MAX_ANSWER + 1];
    int n = r->count, right = 0, missing = 0, outside = 0, listed = 0, longest;
    Text not_right = {0};
    for (const Graded* g = r->list; g < r->list + n; g++) {
        right += g->right, missing += !g->found;
        outside += !g->found && extract_lenient(g->response, answer, sizeof answer) &&
                   answers_equal(answer, g->answer);
        if (!g->right && listed++ < 12) text_printf(&not_right, " %d", g->number);
    }
    Evaluation e = evaluate_responses(&longest, r);
    printf("%d responses to %d questions, reward %s\n\n", n, e.questions, kind->name);
    print_share("right", right, n, "");
    print_share("wrong", n - right - missing, n, "   in the format, but not the answer");
    print_share("no format", missing, n, "   nothing where the reward looks");
    if (outside) printf("  %-10s %6d            of these, right when read leniently\n", "", outside);
    printf("\n");
    print_pass_rates(&e);
    if (longest > e.samples)
        printf("\n%d to %d responses to a question; each question counts the same.\n", e.samples, longest);
    if (listed)
        printf("\nNot right: record%s%s; --explain N shows why.\n", not_right.data,
               listed > 12 ? " and more" : "");
    text_free(&not_right), evaluation_free(&e);
}

// An answer as the comparison sees it (the appendix): its one spelling and, if it has one, its value.
static void print_understood(const char* answer) {
    Normalized n;
    Value value;
    int variables = 0;
    if (!normalize(&n, answer)) { print_wrapped("Normal", "(too long)"); return; }
    print_wrapped("Normal", n.text);
    if (!evaluate(&value, &variables, trim_span(make_span(n.text)), 0)) return;
    printf("Value     %.12g", creal(value.z));
    if (cimag(value.z) != 0.0) printf(" %+.12g i", cimag(value.z));
    if (value.den > 1) printf(" = %lld/%lld exactly", (long long)value.num, (long long)value.den);
    printf("%s\n", variables ? " at evaluation point 0" : "");
}

// Which step of answers_equal decided.
static const char* name_step(const char* a, const char* b) {
    int equal;
    Normalized x, y;
    if (!answers_equal(a, b)) return "different";
    if (!strcmp(a, b)) return "equal: the same text";
    if (decimals_equal(&equal, make_span(a), make_span(b))) return "equal: the same decimal number";
    if (normalize(&x, a) && normalize(&y, b) && !strcmp(x.text, y.text)) return "equal: the same normal form";
    return "equal: two spellings, taken apart and evaluated";
}

static void print_explanation(const Graded* g, const RewardKind* kind, const char* path) {
    char found[MAX_ANSWER + 1], number[64], lenient[MAX_ANSWER + 1];
    const char* answer = g->answer;
    if (kind->reward == reward_gsm8k && extract_hash_answer(answer, number, sizeof number)) answer = number;
    printf("Record %d of %s, line %d, reward %s\n\n", g->number, path, g->line, kind->name);
    print_wrapped("Response", g->response);
    int in_format = kind->format(g->response, found, sizeof found);
    printf("\n");
    print_wrapped("Found", in_format ? found : "(nothing where the reward looks)");
    if (in_format) print_understood(found);
    printf("\n");
    print_wrapped("Answer", answer);
    print_understood(answer);
    printf("\n");
    if (in_format) print_wrapped("Compared", name_step(found, answer));
    else if (extract_lenient(g->response, lenient, sizeof lenient)) {
        print_wrapped("Leniently", lenient);
        print_wrapped("Compared", name_step(lenient, answer));
    }
    printf("Reward    %g\n", (double)kind->reward(g->response, g->answer));
}

static int command_grade(int argc, char** argv) {
    const char *path = NULL, *reward = "boxed";
    int explain = 0;
    Option options[] = {
        {"reward", OPTION_TEXT, &reward, 0, 0, "boxed or gsm8k (the number after ####)", 0, 0},
        {"explain", OPTION_INT, &explain, 0, INT_MAX, "show how record N is judged; 0 = grade all", 0, 0},
        {0}};
    if (asked_for_help(argc, argv,
                       "grade - judges records {\"response\" or \"prediction\", \"answer\"}; those with the\n"
                       "same \"question\" (or \"id\") are responses to one question",
                       "./rl grade FILE [--option=value ...]", options))
        return 0;
    if (!parse_options(options, argc, argv, &path, 1))
        fail(2, "a file is missing: ./rl grade FILE, with lines {\"response\": ..., \"answer\": ...}");
    const RewardKind* kind = find_reward(reward);
    Responses r = load_responses(path);
    if (explain > r.count) fail(2, "--explain %d: %s has %d records", explain, path, r.count);
    for (Graded* g = r.list; g < r.list + r.count && !explain; g++) {
        char answer[MAX_ANSWER + 1];
        g->found = kind->format(g->response, answer, sizeof answer);
        g->right = kind->reward(g->response, g->answer) > 0.5f;
    }
    if (explain) print_explanation(&r.list[explain - 1], kind, path);
    else print_grades(&r, kind);
    responses_free(&r);
    return 0;
}

// ---- ./rl sample

static int command_sample(int argc, char** argv) {
    RlOptions o = rl_defaults();
    o.model = "out/run/rl";
    Option options[RL_OPTIONS] = {{0}};
    const char* question = NULL;
    o.num_samples = 4;
    int n = sampling_options(options, &o);
    options[n] = (Option){
        "answer", OPTION_TEXT, &o.answer, 0, 0, "the right answer: each rollout is then rewarded", 0, 0};
    if (asked_for_help(argc, argv, "sample - answers of a model to one question",
                       "./rl sample \"QUESTION\" [--option=value ...]", options))
        return 0;
    if (!parse_options(options, argc, argv, &question, 1) || !*question)
        fail(2, "a question is missing: ./rl sample \"Tom has 3 pens and buys 4 more. How many pens does Tom "
                "have now?\"");
    check_sampling(&o);
    set_threads(o.threads);
    Model m = load_tagged_model(o.model);
    Tokens prompt = {0};
    render_prompt(&prompt, question);
    Rollout* rollouts = generate(&m, &prompt, 1, o.num_samples, o.sample, tool_calculator, o.seed + 2, 0);
    for (int i = 0; i < o.num_samples; i++) {
        Text raw = rollout_text(&rollouts[i]), text = {0};
        append_readable(&text, raw.data);
        printf("rollout %d: %d tokens%s", i + 1, rollouts[i].length, rollouts[i].finished ? "" : ", cut off");
        if (o.answer) printf(", reward %g", (double)find_reward(o.reward)->reward(raw.data, o.answer));
        printf("\n%s\n\n", text.data);
        text_free(&raw), text_free(&text);
    }
    rollouts_free(rollouts, o.num_samples);
    tokens_free(&prompt), model_free(&m);
    return 0;
}

// ---- ./rl run: the whole story

static Rollout* answer_three(Model* m, const Questions* q, const RlOptions* o, int count) {
    return answer_questions(m, q, 0, count, 1, o->sample, o->seed + 3);
}

static void evaluation_to_json(Text* out, const char* name, const Evaluation* e) {
    int last = e->samples - 1;
    text_printf(out,
                "  \"%s\": {\"pass_at_1\": %.4f, \"pass_at_1_low\": %.4f, \"pass_at_1_high\": %.4f, \"k\": "
                "%d, \"pass_at_k\": %.4f, \"pass_at_k_low\": %.4f, \"pass_at_k_high\": %.4f, \"tool_rate\": "
                "%.4f, \"format_rate\": %.4f, \"mean_length\": %.1f}",
                name, e->pass[0], e->low[0], e->high[0], e->samples, e->pass[last], e->low[last],
                e->high[last], e->tool_rate, e->format_rate, e->length);
}

static void print_before_after(const Evaluation* a, const Evaluation* b) {
    printf("\n%d held-out questions, %d answers to each:\n\n  %-34s %10s %10s\n", a->questions, a->samples,
           "", "before RL", "after RL");
    for (int k = 1; k; k = next_k(k, a->samples, a->samples)) {
        printf("  pass@%-29d %10.3f %10.3f\n", k, a->pass[k - 1], b->pass[k - 1]);
        printf("  %-34s %4.3f-%4.3f %4.3f-%4.3f\n", "  95% interval", a->low[k - 1], a->high[k - 1],
               b->low[k - 1], b->high[k - 1]);
    }
    printf("  %-34s %10.3f %10.3f\n", "answers that used the calculator", a->tool_rate, b->tool_rate);
    printf("  %-34s %10.3f %10.3f\n", "answers in the rewarded format", a->format_rate, b->format_rate);
    printf("  %-34s %10.1f %10.1f\n", "mean length, tokens", a->length, b->length);
}

static void print_three(const Questions* q, const Rollout* before, const Rollout* after, int count,
                        const RewardKind* kind) {
    printf("\nThe same questions before and after ([17+26 -> 43] is a call of the calculator):\n");
    for (int i = 0; i < count; i++) {
        Text raw[2] = {rollout_text(&before[i]), rollout_text(&after[i])}, text[2] = {{0}, {0}};
        printf("\n");
        print_wrapped("", q->list[i].question);
        print_beginning("  right:", q->list[i].truth, 1);
        for (int j = 0; j < 2; j++) {
            append_readable(&text[j], raw[j].data);
            text_printf(&text[j], "\nreward %g", (double)kind->reward(raw[j].data, q->list[i].truth));
        }
        print_side_by_side(text[0].data, text[1].data);
        for (int j = 0; j < 2; j++) text_free(&raw[j]), text_free(&text[j]);
    }
}

static int command_run(int argc, char** argv) {
    RlOptions o = rl_defaults();
    TrainOptions s = train_defaults();
    Option options[RL_OPTIONS] = {{0}}, sft_options[TRAIN_OPTIONS] = {{0}};
    char sft_folder[PATH_SIZE], rl_folder[PATH_SIZE];
    const char* folder = "out/run";
    o.model = NULL;
    int n = sampling_options(options, &o);
    n += training_options(options + n, &o);
    method_options(options + n, &o);
    set_method(&o, asked_algo(argc, argv));
    train_options(sft_options, &s);
    for (Option* t = options; t->name; t++) {
        if (!strcmp(t->name, "out")) t->value = &folder;
        if (!strcmp(t->name, "model-tag")) t->help = "start from this model instead of training one";
        if (!strcmp(t->name, "resume"))      // taken out of the table: a whole story is not resumed
            memmove(t, t + 1, (size_t)(options + RL_OPTIONS - 1 - t) * sizeof *t), t--;
    }
    if (asked_for_help(argc, argv,
                       "run - supervised training, then reinforcement learning, then before and after",
                       "./rl run [--option=value ...]", options))
        return 0;
    parse_options(options, argc, argv, NULL, 0);
    check_sampling(&o);
    check_method(&o, options);
    check_apart(o.data, o.eval_data, o.allow_overlap);
    if (!o.model) check_apart(s.data, o.eval_data, o.allow_overlap);
    set_threads(o.threads);
    double started = seconds_now(), sft_seconds = 0.0;
    join_path(sft_folder, folder, "sft"), join_path(rl_folder, folder, "rl");
    s.seed = o.seed, s.threads = o.threads, s.out = sft_folder, o.out = rl_folder;
    if (!o.model) {
        int status = train(&s, sft_options, NULL);
        if (status) {
            printf("then, for the rest of the story: ./rl run --model-tag %s --out %s\n", sft_folder, folder);
            return status;
        }
        sft_seconds = seconds_now() - started;
        o.model = sft_folder;
        printf("\n");
    }
    Setup setup;
    setup_load(&setup, &o, 0);
    Model* m = &setup.policy;
    const RewardKind* kind = setup.learner.reward.verifier;
    Questions test = load_questions(o.eval_data, m->config.context, o.sample.max_new_tokens);
    int three = min_int(3, test.count);
    Evaluation before = evaluate_model(m, &test, 256, 16, o.sample, kind, NULL, o.seed + 2);
    Rollout* first = answer_three(m, &test, &o, three);
    printf(
        "before RL, on %d held-out questions: pass@1 %.3f,\ncalculator used %.3f, rewarded format %.3f\n\n",
        before.questions, before.pass[0], before.tool_rate, before.format_rate);
    double rl_started = seconds_now();
    int status = rl_train(&setup.learner, options, 0);
    double rl_seconds = seconds_now() - rl_started;
    if (status) return status;
    Evaluation after = evaluate_model(m, &test, 256, 16, o.sample, kind, NULL, o.seed + 2);
    Rollout* last = answer_three(m, &test, &o, three);
    print_before_after(&before, &after);
    print_three(&test, first, last, three, kind);
    double total = seconds_now() - started;
    Text out = {0};
    text_printf(&out,
                "{\n  \"seed\": %llu,\n  \"threads\": %d,\n  \"reward\": \"%s\",\n  \"sft_seconds\": %.2f,\n "
                " \"rl_seconds\": %.2f,\n  \"total_seconds\": %.2f,\n  \"peak_rss_mb\": %.1f,\n",
                (unsigned long long)o.seed, thread_count(), o.reward, sft_seconds, rl_seconds, total,
                peak_memory_mb());
    evaluation_to_json(&out, "before", &before);
    text_printf(&out, ",\n");
    evaluation_to_json(&out, "after", &after);
    text_printf(&out, "\n}\n");
    write_file(folder, "result.json", &out);
    printf(
        "\n%.0f s in all: %.0f s supervised, %.0f s RL; %.0f MB; %d threads, seed %llu\n",
        total, sft_seconds, rl_seconds, peak_memory_mb(), thread_count(), (unsigned long long)o.seed);
    printf("wrote %s/result.json, %s, %s\n", folder, o.model, rl_folder);
    text_free(&out), rollouts_free(first, three), rollouts_free(last, three);
    evaluation_free(&before), evaluation_free(&after), questions_free(&test);
    setup_free(&setup);
    return 0;
}

// ---- text in a narrow place

// A text in one line; of one that is longer than `width` characters, the end.
static void print_ending(const char* text, int width) {
    const char *s = text + strlen(text), *cut = s;
    for (int count = 0; s > text && count < width;) {
        int begins = (*--s & 0xC0) != 0x80; // 10xxxxxx goes on with a character
        count += begins;
        if (begins && count <= width - 2) cut = s;
    }
    if (s > text) printf(".."), s = cut;
    for (; *s; s++) putchar(*s == '\n' ? ' ' : *s);
}

static void print_rollout_ending(const Rollout* r, int width) {
    Text raw = rollout_text(r), text = {0};
    append_readable(&text, raw.data);
    print_ending(text.data, width);
    text_free(&raw), text_free(&text);
}

// ---- ./rl trace

// The rollouts of one question with everything that the loss sees. Arrays are (K,T1), 0 behind the end.
typedef struct {
    int K, T1, judged, compared;
    Rollout* rollouts;         // (K)
    float *reward, *advantage; // (K), when judged
    float *logp, *other;       // under the model that sampled; under a second one, when compared
    float* slope;              // d(loss)/d(logp), when judged
    int* mask;
    double loss; // -(sum of advantage x logp) / valid tokens: chapter 9, as in chapter 10
} Trace;

// Takes over the rollouts. truth may be NULL (no rewards then), other may be NULL (no comparison).
static Trace trace_group(Model* m, Model* other, const Tokens* prompt, Rollout* rollouts, int K,
                         const char* truth, const RewardKind* kind) {
    int T1 = longest_rollout(rollouts, K);
    size_t n = (size_t)K * T1;
    Trace s = {.K = K, .T1 = T1, .judged = truth != NULL, .compared = other != NULL, .rollouts = rollouts};
    s.reward = allocate((size_t)K, sizeof(float)), s.advantage = allocate((size_t)K, sizeof(float));
    s.logp = allocate(n, sizeof(float)), s.other = allocate(n, sizeof(float));
    s.slope = allocate(n, sizeof(float)), s.mask = allocate(n, sizeof(int));
    for (int k = 0; k < K; k++) {
        score_rollout(s.logp + (size_t)k * T1, m, prompt, &rollouts[k]);
        if (other) score_rollout(s.other + (size_t)k * T1, other, prompt, &rollouts[k]);
        memcpy(s.mask + (size_t)k * T1, rollouts[k].mask, (size_t)rollouts[k].length * sizeof(int));
    }
    if (truth) {
        judge_group(s.reward, rollouts, K, truth, kind);
        advantages_centered(s.advantage, s.reward, K);
        s.loss = loss_policy_gradient(s.slope, s.logp, s.advantage, s.mask, K, T1, NORM_TOKEN_MEAN);
    }
    return s;
}

static void trace_free(Trace* s) {
    rollouts_free(s->rollouts, s->K);
    free(s->reward), free(s->advantage), free(s->logp), free(s->other), free(s->slope), free(s->mask);
    *s = (Trace){0};
}

// What rollout k adds to the loss: the sum of its tokens' shares.
static double rollout_share(const Trace* s, int k) {
    double share = 0.0;
    for (size_t i = (size_t)k * s->T1; i < (size_t)(k + 1) * s->T1; i++)
        share += (double)s->slope[i] * s->logp[i];
    return share;
}

static int first_rewarded(const Trace* s) {
    for (int k = 0; k < s->K && s->judged; k++)
        if (s->reward[k] > 0.5f) return k;
    return 0;
}

// One line per rollout; the one that is shown token by token below has the mark.
static void print_trace_group(const Trace* s, int chosen) {
    float *sum = allocate((size_t)s->K, sizeof(float)), *other = allocate((size_t)s->K, sizeof(float));
    int valid = count_masked(s->mask, s->K * s->T1), room = 80 - 19 - 8 - 2;
    sequence_logprobs(sum, s->logp, s->mask, s->K, s->T1);
    sequence_logprobs(other, s->other, s->mask, s->K, s->T1);
    room -= (s->judged ? 23 : 0) + (s->compared ? 16 : 0);
    printf("   k%s tokens sampled%8s", s->judged ? " reward     adv" : "", s->compared ? "logp A" : "log pi");
    printf("%s%s  answer ends\n", s->compared ? "  logp B   B - A" : "", s->judged ? "   share" : "");
    for (int k = 0; k < s->K; k++) {
        const Rollout* r = &s->rollouts[k];
        printf("%c%3d", k == chosen ? '>' : ' ', k);
        if (s->judged) printf(" %6g %7.4f", (double)s->reward[k], (double)s->advantage[k]);
        printf(" %6d %7d", r->length, count_masked(r->mask, r->length));
        print_nats(sum[k], 1);
        if (s->compared) print_nats(other[k], 1), print_change((double)other[k] - sum[k], 1);
        if (s->judged) print_nats(0.0 + 1e3 * rollout_share(s, k), 1);
        printf("  ");
        print_rollout_ending(r, room);
        printf("\n");
    }
    if (s->judged)
        printf("\nThe shares (in thousandths) add up to the loss of the group:\n"
               "-(sum of adv x log pi) / %d sampled tokens = %.6f.\n",
               valid, s->loss);
    free(sum), free(other);
}

// Did the second model move as the advantages of the first one's rollouts ask? Means per rollout.
static void print_trace_change(const Trace* s) {
    double change[2] = {0.0, 0.0};
    int count[2] = {0, 0};
    for (int k = 0; k < s->K; k++) {
        int right = s->reward[k] > 0.5f;
        count[right]++;
        for (int t = 0; t < s->T1; t++)
            change[right] += (double)s->other[k * s->T1 + t] - s->logp[k * s->T1 + t];
    }
    printf("\nFrom A to B the log-probability of a rollout changed on average by\n\n");
    if (count[1]) printf("   %+10.4f nats for the %d that were rewarded\n", change[1] / count[1], count[1]);
    if (count[0]) printf("   %+10.4f nats for the %d that were not\n", change[0] / count[0], count[0]);
    if (count[1] && change[1] < 0.0)
        printf("\nA rewarded rollout may become less likely too, when it is right here by a way of\n"
               "answering that mostly fails: training saw more than this question.\n");
}

// The tokens that learn the most. What reaches the logit of a chosen token is slope * (1 - p), chapter 3, and
// the slope is the same for all of them.
static void print_decisions(const Rollout* r, const float* logp) {
    int done[3];
    double sum = 0.0;
    for (int t = 0; t < r->length; t++) sum += r->mask[t] ? 1.0 - exp((double)logp[t]) : 0.0;
    printf("\nWhat reaches the logit of a chosen token is slope x (1 - p). Of all of it");
    for (int i = 0; i < 3 && i < count_masked(r->mask, r->length); i++) {
        int best = -1;
        char text[24];
        for (int t = 0; t < r->length; t++) {
            int used = !r->mask[t] || (i > 0 && t == done[0]) || (i > 1 && t == done[1]);
            if (!used && (best < 0 || logp[t] < logp[best])) best = t;
        }
        done[i] = best;
        printf("%s\n   %5.1f%% goes to t = %d, %s", i ? "," : "",
               100.0 * (1.0 - exp((double)logp[best])) / fmax(sum, 1e-300), best,
               token_text(text, r->ids[best]));
    }
    printf(".\n");
}

static void print_trace(const Trace* s, int chosen) {
    size_t at = (size_t)chosen * s->T1;
    print_trace_group(s, chosen);
    if (s->judged && s->compared) print_trace_change(s);
    if (s->judged && !has_signal(s->advantage, s->K))
        printf("\nAll rewards are equal, so all advantages are 0 and nothing is learned from\n"
               "these. More samples (--num-samples) or another question may bring a difference.\n");
    printf("\nRollout %d, token by token.%s\n\n", chosen,
           s->judged ? " slope = d loss / d log pi = -adv / sampled tokens of\nthe "
                       "group; share = slope x log pi; both in thousandths. m is the mask."
                     : "");
    print_tokens(&s->rollouts[chosen], s->logp + at, s->compared ? s->other + at : NULL,
                 s->judged ? s->slope + at : NULL);
    if (s->advantage[chosen] != 0.0f) print_decisions(&s->rollouts[chosen], s->logp + at);
    printf("\nTake away: %s\n",
           s->judged ? "every sampled token has the same slope, every forced one has 0.\n"
                       "A token that was certain has nothing to learn; the open decisions learn."
                     : "log pi(y|x) is a sum over sampled tokens, without the forced ones.\n"
                       "With --answer N come reward, advantage and each token's share of the loss.");
}

// The prompt of a question that came from the command line.
static Tokens question_prompt(const char* question, const Model* m) {
    Tokens prompt = {0};
    render_prompt(&prompt, question);
    int frame = prompt.length - (int)strlen(question);
    if (prompt.length + 1 > m->config.context)
        fail(2,
             "the question has %d tokens; beside the %d of its frame and one of an answer, %d fit into the "
             "model's context of %d",
             prompt.length - frame, frame, max_int(0, m->config.context - frame - 1), m->config.context);
    return prompt;
}

static int command_trace(int argc, char** argv) {
    RlOptions o = rl_defaults();
    Option options[RL_OPTIONS] = {{0}};
    const char *question = NULL, *compare = NULL;
    int chosen = -1;
    o.model = "out/run/rl", o.num_samples = 8;
    Option more[] = {
        {"answer", OPTION_TEXT, &o.answer, 0, 0, "the right answer: brings reward, advantage, loss", 0, 0},
        {"compare", OPTION_TEXT, &compare, 0, 0, "a second model that looks at the same rollouts", 0, 0},
        {"rollout", OPTION_INT, &chosen, -1, 4095, "which one token by token; -1 = the first rewarded", 0,
         0}};
    memcpy(options + sampling_options(options, &o), more, sizeof more);
    if (asked_for_help(argc, argv, "trace - the rollouts of one question, and one of them token by token",
                       "./rl trace \"QUESTION\" [--option=value ...]", options))
        return 0;
    if (!parse_options(options, argc, argv, &question, 1) || !*question)
        fail(2, "a question is missing: ./rl trace \"Tom has 3 pens and buys 4 more. How many pens does "
                "Tom have now?\" --answer 7");
    if (chosen >= o.num_samples)
        fail(2, "--rollout %d: there are %d rollouts, 0 to %d; --num-samples asks for more", chosen,
             o.num_samples, o.num_samples - 1);
    check_sampling(&o);
    set_threads(o.threads);
    Model m = load_tagged_model(o.model), other = {0};
    if (compare) other = load_tagged_model(compare);
    Tokens prompt = question_prompt(question, &m);
    if (compare && other.config.context < min_int(m.config.context, prompt.length + o.sample.max_new_tokens))
        fail(2, "the context of %s, %d tokens, is too short for the question and %d new tokens", compare,
             other.config.context, o.sample.max_new_tokens);
    Rollout* rollouts = generate(&m, &prompt, 1, o.num_samples, o.sample, tool_calculator, o.seed + 2, 0);
    Trace s = trace_group(&m, compare ? &other : NULL, &prompt, rollouts, o.num_samples, o.answer,
                          find_reward(o.reward));
    print_wrapped("Question", question);
    if (o.answer) printf("Answer    %s, reward %s\n", o.answer, o.reward);
    printf("Model     %s%s\n", compare ? "A = " : "", o.model);
    if (compare) printf("          B = %s\n", compare);
    printf("\n%d rollouts%s, seed %llu:\n\n", o.num_samples, compare ? ", sampled by A" : "",
           (unsigned long long)o.seed);
    print_trace(&s, chosen < 0 ? first_rewarded(&s) : chosen);
    trace_free(&s), tokens_free(&prompt), model_free(&m);
    if (compare) model_free(&other);
    return 0;
}

// ---- ./rl experiment: the three experiments at the end of D3

typedef struct {
    RlOptions rl;
    const char *question, *completion;
    int shortest, longest, groups;
} ExperimentOptions;

// A question and an answer to it as one sequence: ids, and the mask as the rollout has it. *prompt is the
// length of the question's part. The answer is the given one, or else one that the model samples.
static Tokens experiment_text(int* prompt, const char* title, Model* m, const ExperimentOptions* e) {
    const RlOptions* o = &e->rl;
    Problems file = {0};
    if (!e->question) file = load_problems(o->eval_data);
    const char* question = e->question ? e->question : file.list[0].question;
    Tokens text = question_prompt(question, m);
    *prompt = text.length;
    if (e->completion) {
        tokens_free(&text);
        render_conversation(&text, question, e->completion);
    } else {
        Rollout* r = generate(m, &text, 1, 1, o->sample, tool_calculator, o->seed + 2, 0);
        for (int t = 0; t < r->length; t++) tokens_add(&text, r->ids[t], r->mask[t]);
        rollouts_free(r, 1);
    }
    if (text.length > m->config.context)
        fail(2, "question and answer have %d tokens; the model's context has room for %d", text.length,
             m->config.context);
    Text raw = {0}, answer = {0};
    decode_tokens(&raw, text.ids + *prompt, text.length - *prompt, 1);
    append_readable(&answer, raw.data);
    printf("%s (D3, hands-on experiments)\n\nModel     %s\n", title, o->model);
    print_wrapped("Question", question);
    print_wrapped("Answer", answer.data);
    printf("          (%s; [expression -> result] is a call of the tool)\n\n",
           e->completion ? "given" : "sampled by the model");
    text_free(&raw), text_free(&answer), problems_free(&file);
    return text;
}

// The logits of every position, (T,V), as D3's first lines compute them. free() them.
static float* all_logits(Model* m, const int* ids, int T) {
    Batch b = {0};
    int* targets = allocate((size_t)T, sizeof(int)); // all 0: every position is asked, about anything
    float* logits = allocate((size_t)T * m->config.vocab_size, sizeof(float));
    batch_add(&b, ids, targets, T, -1);
    model_forward(m, &b);
    memcpy(logits, m->acts.logits, (size_t)T * m->config.vocab_size * sizeof(float));
    batch_free(&b), free(targets);
    return logits;
}

// log pi(ids[t] | ids[0..t-1]) by a forward pass of its own, which sees nothing of what comes later.
static float one_factor(Model* m, const int* ids, int t) {
    Batch b = {0};
    int* targets = allocate((size_t)t, sizeof(int));
    for (int i = 0; i < t; i++) targets[i] = i == t - 1 ? ids[t] : -1;
    batch_add(&b, ids, targets, t, -1);
    model_forward(m, &b);
    float logp = m->acts.logp[0];
    batch_free(&b), free(targets);
    return logp;
}

// Both ways for the tokens first .. T-1 that have mask 1; (T - first) each, 0 where the mask is 0. Returns
// the largest difference.
static double decompose(float* at_once, float* one_by_one, Model* m, const float* logits, const Tokens* text,
                        int first) {
    double largest = 0.0;
    float* logp = allocate((size_t)text->length, sizeof(float));
    token_logprobs(logp, logits, text->ids, 1, text->length, m->config.vocab_size);
    for (int t = first; t < text->length; t++) {
        at_once[t - first] = text->mask[t] ? logp[t - 1] : 0.0f;
        one_by_one[t - first] = text->mask[t] ? one_factor(m, text->ids, t) : 0.0f;
        largest = fmax(largest, fabs((double)at_once[t - first] - one_by_one[t - first]));
    }
    free(logp);
    return largest;
}

// The product of the factors, instead of the sum of their logs.
static void print_products(const char* name, const float* logp, int n) {
    float product_float = 1.0f;
    double product = 1.0, sum = 0.0;
    for (int t = 0; t < n; t++) {
        product_float *= (float)exp((double)logp[t]);
        product *= exp((double)logp[t]), sum += logp[t];
    }
    printf("   %-30s %6d %12.4f %12.4g %12.4g\n", name, n, sum, (double)product_float, product);
}

static void print_underflow_of(const float* chosen, int n, const float* every, int T1) {
    double mean = 0.0;
    for (int t = 0; t < n; t++) mean += (double)chosen[t] / n;
    printf("3. Product or sum. The factors multiplied, in float and in double:\n\n");
    printf("   %-30s %6s %12s %12s %12s\n", "", "tokens", "sum of logs", "float", "double");
    print_products("the answer's sampled tokens", chosen, n);
    print_products("all tokens, prompt included", every, T1);
    printf("\n   Normal floats end at 2^-126 = exp(%.2f), doubles at 2^-1022 = exp(%.2f).\n"
           "   With %.4g nats per token that is after ",
           log(0x1p-126), log(0x1p-1022), mean);
    if (mean < 0.0) printf("%.0f and %.0f tokens.\n\n", log(0x1p-126) / mean, log(0x1p-1022) / mean);
    else printf("no number of tokens.\n\n");
}

static void experiment_1(Model* m, const ExperimentOptions* e) {
    int prompt, n = 0, V = m->config.vocab_size;
    Tokens text = experiment_text(&prompt, "EXPERIMENT 1. The decomposition and the mask", m, e);
    int T = text.length, length = T - prompt;
    float* logits = all_logits(m, text.ids, T);
    float *at_once = allocate((size_t)length, sizeof(float)),
          *one_by_one = allocate((size_t)length, sizeof(float)),
          *chosen = allocate((size_t)length, sizeof(float)), *every = allocate((size_t)T, sizeof(float));
    double difference = decompose(at_once, one_by_one, m, logits, &text, prompt);
    Rollout answer = {.length = length, .ids = text.ids + prompt, .mask = text.mask + prompt};
    for (int t = 0; t < length; t++)
        if (answer.mask[t]) chosen[n++] = at_once[t];
    token_logprobs(every, logits, text.ids, 1, T, V);

    printf("1. log pi(y|x) = sum over t of log pi(y_t | x, y_<t), a term per sampled token:\n\n"
           "   A: one pass over the whole text, logits shifted against the ids (chapter 3).\n"
           "   B: a pass of its own for each token, over nothing but what came before it.\n\n");
    print_tokens(&answer, at_once, one_by_one, NULL);
    printf("\n   Largest difference of a term: %.1e nats. One pass is enough because\n"
           "   attention is causal: no token sees what comes after it.\n\n",
           difference);

    printf("2. The mask. %d tokens of prompt, %d of answer, %d of them sampled:\n\n", prompt, length, n);
    print_mask_slips(logits, text.ids, text.mask, prompt, T, V);
    printf("\n   Nothing crashes: every line has a number, and one of them is right. The\n"
           "   prompt weighs so much because it is long, and because models are trained to\n"
           "   write answers, not questions. Answers of different length are compared by the\n"
           "   mean per token.\n\n");

    print_underflow_of(chosen, n, every, T - 1);
    printf("Take away: the log-probability of an answer is a sum over the tokens that the\n"
           "model chose. Neither the question nor the tool's words belong to it.\n");
    free(logits), free(at_once), free(one_by_one), free(chosen), free(every);
    tokens_free(&text);
}

// ---- experiment 2: KL by hand

// The n positions of an answer where the model chose a token. The reference is the model; the policy is the
// model with drift * noise added to its logits, the same noise for every drift.
typedef struct {
    int n;
    float *logits, *noise; // (n,V)
    int* id;               // (n) the token that the text has there
} States;

static States states_new(const float* logits, const Tokens* text, int prompt, uint64_t seed) {
    States s = {0};
    int V = VOCAB_SIZE, most = text->length - prompt;
    s.logits = allocate((size_t)most * V, sizeof(float)), s.noise = allocate((size_t)most * V, sizeof(float));
    s.id = allocate((size_t)most, sizeof(int));
    for (int t = prompt; t < text->length; t++) {
        if (!text->mask[t]) continue;
        Rng rng = random_stream(seed, 4, (uint64_t)t);
        memcpy(s.logits + (size_t)s.n * V, logits + (size_t)(t - 1) * V, (size_t)V * sizeof(float));
        for (int v = 0; v < V; v++) s.noise[(size_t)s.n * V + v] = (float)random_normal(&rng);
        s.id[s.n++] = text->ids[t];
    }
    return s;
}

static void states_free(States* s) {
    free(s->logits), free(s->noise), free(s->id);
    *s = (States){0};
}

static void policy_at(double* logp, const States* s, int i, double drift) { // drift 0: the reference
    double z[VOCAB_SIZE];
    for (int v = 0; v < VOCAB_SIZE; v++)
        z[v] = s->logits[(size_t)i * VOCAB_SIZE + v] + drift * s->noise[(size_t)i * VOCAB_SIZE + v];
    toy_log_softmax(logp, z, VOCAB_SIZE);
}

static int draw_token(const double* logp, Rng* rng) {
    double u = random_uniform(rng), below = 0.0;
    int last = 0;
    for (int v = 0; v < VOCAB_SIZE; v++) {
        double p = exp(logp[v]);
        below += p;
        if (u < below) return v;
        if (p > 0.0) last = v;
    }
    return last; // rounding: the probabilities added up to a little less than 1
}

enum { ESTIMATES = 5 };
static const struct {
    const char* name;
    int estimator;
    double sign;
} kl_estimators[ESTIMATES] = {
    {"k1", 1, 1.0}, {"k2", 2, 1.0}, {"k3", 3, 1.0}, {"D3 k1", 1, -1.0}, {"D3 k3", 3, -1.0}};

enum { FROM_TEXT, FROM_POLICY, FROM_REFERENCE }; // where the tokens come from

typedef struct {                // means per token over the states
    double exact, reverse;      // KL(pi||ref) and KL(ref||pi), by the sum over the vocabulary
    double mean[ESTIMATES];     // the estimators on the tokens of the source
    double expected[ESTIMATES]; // the same with every token of the vocabulary, weighted by the policy
    double spread[ESTIMATES], below[ESTIMATES]; // of one draw from the policy: deviation, chance of < 0
} KlMeasure;

static KlMeasure measure_kl(const States* s, double drift, int source, int draws, Rng* rng) {
    KlMeasure k = {0};
    double logp[VOCAB_SIZE], logp_ref[VOCAB_SIZE], variance, below, slope, n = s->n;
    if (source == FROM_TEXT) draws = 1;
    for (int i = 0; i < s->n; i++) {
        policy_at(logp, s, i, drift), policy_at(logp_ref, s, i, 0.0);
        k.exact += exact_kl(logp, logp_ref, VOCAB_SIZE) / n,
            k.reverse += exact_kl(logp_ref, logp, VOCAB_SIZE) / n;
        for (int e = 0; e < ESTIMATES; e++) {
            k.expected[e] += kl_moments(&variance, &below, logp, logp_ref, VOCAB_SIZE, kl_estimators[e].sign,
                                        kl_estimators[e].estimator) /
                             n;
            k.spread[e] += variance / n, k.below[e] += below / n;
        }
        for (int d = 0; d < draws; d++) {
            int v = source == FROM_TEXT ? s->id[i] : draw_token(source == FROM_POLICY ? logp : logp_ref, rng);
            for (int e = 0; e < ESTIMATES; e++)
                k.mean[e] += kl_estimate(&slope, kl_estimators[e].sign * (logp[v] - logp_ref[v]),
                                         kl_estimators[e].estimator) /
                             (n * draws);
        }
    }
    for (int e = 0; e < ESTIMATES; e++) k.spread[e] = sqrt(fmax(0.0, k.spread[e]));
    return k;
}

enum { DRIFTS = 6, KL_DRAWS = 2000 };
static const double drifts[DRIFTS] = {0.1, 0.5, 1.0, 2.0, 3.0, 4.0};

static void print_kl_table(const States* s, int source, uint64_t seed) {
    Rng rng = random_stream(seed, 5, (uint64_t)source);
    printf("   noise  %s", source == FROM_REFERENCE ? "KL(ref||pi)" : "KL(pi||ref)");
    for (int e = 0; e < ESTIMATES; e++) printf("%11s", kl_estimators[e].name);
    printf("\n");
    for (int i = 0; i < DRIFTS; i++) {
        KlMeasure k = measure_kl(s, drifts[i], source, KL_DRAWS, &rng);
        printf("   %5.1f %12.4g", drifts[i], source == FROM_REFERENCE ? k.reverse : k.exact);
        for (int e = 0; e < ESTIMATES; e++) printf("%11.4g", k.mean[e]);
        printf("\n");
    }
    printf("\n");
}

static void print_kl_spread(const States* s) {
    int calmer = 0;
    printf("4. Without sampling: means over all %d tokens of the vocabulary, weighted by\n"
           "   the policy, and the standard deviation (dev) of one draw.\n\n",
           VOCAB_SIZE);
    printf("   noise  KL(pi||ref)   mean k2   mean k3 mean D3 k3    dev k1    dev k3  k1 < 0\n");
    for (int i = 0; i < DRIFTS; i++) {
        KlMeasure k = measure_kl(s, drifts[i], FROM_TEXT, 1, NULL);
        printf("   %5.1f %12.4g%10.4g%10.4g%11.4g%10.4g%10.4g%7.1f%%\n", drifts[i], k.exact, k.expected[1],
               k.expected[2], k.expected[4], k.spread[0], k.spread[2], 100.0 * k.below[0]);
        calmer += k.spread[2] < k.spread[0];
    }
    printf("\n   k3 is never below 0. It is calmer than k1 in %d of %d rows; far from the\n"
           "   reference it can be the wilder one (chapter 8). The mean of N draws is off by\n"
           "   about dev / sqrt(N); above N = %d.\n\n",
           calmer, DRIFTS, KL_DRAWS * s->n);
}

// r - beta KL for a right answer, r = 1, with the KL of the whole answer or its mean per token.
static void print_kl_budget(const States* s) {
    static const double betas[] = {0.001, 0.003, 0.01, 0.03, 0.1};
    double kl[DRIFTS];
    for (int i = 0; i < DRIFTS; i++) kl[i] = measure_kl(s, drifts[i], FROM_TEXT, 1, NULL).exact;
    for (int whole = 1; whole >= 0; whole--) {
        int dominated = 0;
        printf("   %s\n   beta  noise",
               whole ? "with the sum over the tokens" : "with the mean per token, as D3's code has it");
        for (int i = 0; i < DRIFTS; i++) printf(i ? "%10.1f" : "%9.1f", drifts[i]);
        printf("\n   KL, nats  ");
        for (int i = 0; i < DRIFTS; i++) printf("%10.4g", (whole ? s->n : 1) * kl[i]);
        printf("\n");
        for (size_t b = 0; b < sizeof betas / sizeof *betas; b++) {
            printf("   %-10.3g", betas[b]);
            for (int i = 0; i < DRIFTS; i++) {
                double cost = betas[b] * (whole ? s->n : 1) * kl[i];
                printf(" %c%8.4f", cost > 1.0 ? '*' : ' ', 1.0 - cost);
                dominated += cost > 1.0;
            }
            printf("\n");
        }
        printf("   1/KL      ");
        for (int i = 0; i < DRIFTS; i++) printf("%10.4g", 1.0 / ((whole ? s->n : 1) * kl[i]));
        printf("\n");
        printf("   The KL term is larger than the reward in %d of %d cells (marked *).\n\n", dominated,
               (int)(sizeof betas / sizeof *betas) * DRIFTS);
    }
}

static void experiment_2(Model* m, const ExperimentOptions* e) {
    int prompt;
    Tokens text = experiment_text(&prompt, "EXPERIMENT 2. KL by hand", m, e);
    float* logits = all_logits(m, text.ids, text.length);
    States s = states_new(logits, &text, prompt, e->rl.seed);
    printf("The reference is the model. The policy is the model with noise on its logits:\n"
           "normal numbers times the size in the first column, as if it had been trained\n"
           "away. L = log pi - log pi_ref of a token, in nats; means over %d positions.\n\n"
           "   k1 = L      k2 = L^2/2      k3 = exp(-L) - 1 + L         (chapter 8)\n"
           "   D3 k1 = -L                  D3 k3 = exp(L) - 1 - L       (as D3 prints them)\n\n",
           s.n);
    printf("1. On the fixed text above, as in D3's experiment:\n\n");
    print_kl_table(&s, FROM_TEXT, e->rl.seed);
    printf("   No column promises anything here: the policy did not write this text. That k3\n"
           "   and D3's k3 are never negative does not make them KL(pi||ref).\n\n");
    printf("2. %d tokens drawn FROM THE POLICY at each of these positions:\n\n", KL_DRAWS);
    print_kl_table(&s, FROM_POLICY, e->rl.seed);
    printf("   Here the promise holds: k1 and k3 meet KL(pi||ref), and near the reference so\n"
           "   does k2. D3's k1 is the negative of it, and D3's k3 goes its own way.\n\n");
    printf("3. %d tokens drawn FROM THE REFERENCE at each of these positions:\n\n", KL_DRAWS);
    print_kl_table(&s, FROM_REFERENCE, e->rl.seed);
    printf("   These are the samples that D3's signs belong to: D3's k1 and k3 estimate the\n"
           "   other KL, KL(ref||pi), from them.\n\n");
    print_kl_spread(&s);
    printf("5. The KL budget: total reward r - beta KL of a right answer, r = 1. At a beta\n"
           "   of 1/KL nothing is left of it.\n\n");
    print_kl_budget(&s);
    printf("   (KL at the positions of this one text; for the policy's own answers it would\n"
           "   be averaged over the texts that the policy writes.)\n\n"
           "Take away: an estimator belongs to the distribution that drew the samples. And\n"
           "beta means nothing before one has said sum or mean: the two differ %d-fold here.\n",
           s.n);
    states_free(&s), free(logits), tokens_free(&text);
}

// ---- experiment 3: how sparse a 0/1 reward is

// Characters of a reply, for D3's rule: 1 when it has between --shortest and --longest of them.
static int count_characters(const Rollout* r) {
    Text reply = {0};
    int characters = 0;
    decode_tokens(&reply, r->ids, r->length, 0);
    for (size_t i = 0; i < reply.length; i++) characters += (reply.data[i] & 0xC0) != 0x80;
    text_free(&reply);
    return characters;
}

typedef struct {           // groups of K rewards of 0 or 1, counted
    int K, groups, silent; // silent: no advantage differs from 0
    int* with;             // (K+1) groups in which c rollouts were rewarded
    double rate, own;      // sums over the groups of c/K, and of the formula at p = c/K
} GroupCounts;

static void count_group(GroupCounts* g, const float* reward) {
    float* advantage = allocate((size_t)g->K, sizeof(float));
    int c = 0;
    for (int k = 0; k < g->K; k++) c += reward[k] > 0.5f;
    advantages_grpo(advantage, reward, g->K, 1e-8f);
    g->groups++, g->with[c]++, g->silent += !has_signal(advantage, g->K);
    g->rate += (double)c / g->K, g->own += no_signal_odds((double)c / g->K, g->K);
    free(advantage);
}

// Rewards of the K rollouts of one question under both rules, (K) each.
static void reward_both(float* verified, float* by_length, const Rollout* r, int K, const char* truth,
                        const ExperimentOptions* e) {
    float* unused = allocate((size_t)K, sizeof(float));
    judge_group(verified, r, K, truth, find_reward(e->rl.reward));
    for (int k = 0; k < K; k++) {
        int characters = count_characters(&r[k]);
        by_length[k] = characters >= e->shortest && characters <= e->longest ? 1.0f : 0.0f;
    }
    free(unused);
}

static void print_one_group(const Rollout* r, const float* reward[2], int K) {
    static const char* const names[2] = {"verifier", "length rule"};
    float* advantage[2] = {allocate((size_t)K, sizeof(float)), allocate((size_t)K, sizeof(float))};
    for (int rule = 0; rule < 2; rule++) advantages_grpo(advantage[rule], reward[rule], K, 1e-8f);
    printf("        verifier           length rule\n   k  reward       A  characters  reward       A  answer "
           "ends\n");
    for (int k = 0; k < K; k++) {
        printf("%4d %7g %7.4f %11d", k, (double)reward[0][k], (double)advantage[0][k],
               count_characters(&r[k]));
        printf(" %7g %7.4f  ", (double)reward[1][k], (double)advantage[1][k]);
        print_rollout_ending(&r[k], 30);
        printf("\n");
    }
    printf("\n");
    for (int rule = 0; rule < 2; rule++) {
        int right = 0, small = 0;
        for (int k = 0; k < K; k++) right += reward[rule][k] > 0.5f, small += fabs(advantage[rule][k]) < 0.1f;
        printf("   %-12s %d of %d have the same score; %d of %d advantages are below 0.1\n", names[rule],
               max_int(right, K - right), K, small, K);
    }
    free(advantage[0]), free(advantage[1]);
}

static void print_group_counts(const GroupCounts* g) { // g[0] verifier, g[1] length rule
    int K = g->K;
    float *reward = allocate((size_t)K, sizeof(float)), *advantage = allocate((size_t)K, sizeof(float));
    printf("   rewarded   same    verifier         length rule      advantage (GRPO) of\n"
           "   of %-5d  score    groups  share    groups  share    rewarded  the others\n",
           K);
    for (int c = 0; c <= K; c++) {
        if (K > 16 && !g[0].with[c] && !g[1].with[c]) continue;
        for (int k = 0; k < K; k++) reward[k] = k < c ? 1.0f : 0.0f;
        advantages_grpo(advantage, reward, K, 1e-8f);
        printf("   %8d %6d", c, max_int(c, K - c));
        for (int rule = 0; rule < 2; rule++)
            printf("%10d %6.3f", g[rule].with[c], (double)g[rule].with[c] / g[rule].groups);
        if (c) printf(" %11.4f", (double)advantage[0]);
        else printf(" %11s", "-");
        if (c < K) printf(" %11.4f\n", (double)advantage[K - 1]);
        else printf(" %11s\n", "-");
    }
    free(reward), free(advantage);
}

static void print_signal(const GroupCounts* g) {
    int K = g->K, n = g->groups;
    const char* line = "   %-48s %12.4f %14.4f\n";
    char formula[64];
    snprintf(formula, sizeof formula, "p^%d + (1-p)^%d, one p for all questions", K, K);
    printf("\n   %-48s %12s %14s\n", "", "verifier", "length rule");
    printf(line, "p, the share of rewarded rollouts", g[0].rate / n, g[1].rate / n);
    printf(line, formula, no_signal_odds(g[0].rate / n, K), no_signal_odds(g[1].rate / n, K));
    printf(line, "groups without signal, counted", (double)g[0].silent / n, (double)g[1].silent / n);
    printf(line, "the formula at each question's own c/K, averaged", g[0].own / n, g[1].own / n);
}

static void experiment_3(Model* m, const ExperimentOptions* e) {
    const RlOptions* o = &e->rl;
    int K = o->num_samples;
    if (e->question && !o->answer) fail(2, "--question needs --answer, which the verifier compares with");
    Questions q = load_questions(o->eval_data, m->config.context, o->sample.max_new_tokens);
    int groups = min_int(e->groups, q.count);
    const char *question = e->question ? e->question : q.list[0].question,
               *truth = e->question ? o->answer : q.list[0].truth;
    float *verified = allocate((size_t)K, sizeof(float)), *by_length = allocate((size_t)K, sizeof(float));
    Tokens prompt = question_prompt(question, m);
    Rollout* r = generate(m, &prompt, 1, K, o->sample, tool_calculator, o->seed + 2, 0);
    reward_both(verified, by_length, r, K, truth, e);
    printf("EXPERIMENT 3. How sparse a bandit's reward is (D3, hands-on experiments)\n\n");
    printf("Model     %s\n", o->model);
    print_wrapped("Question", question);
    print_beginning("Answer", truth, 1), printf("\n");
    printf("1. %d samples at temperature %g, rewarded by the verifier (%s) and by D3's\n"
           "   length rule: 1 for a reply of %d to %d characters. A is GRPO's advantage.\n\n",
           K, (double)o->sample.temperature, o->reward, e->shortest, e->longest);
    print_one_group(r, (const float*[]){verified, by_length}, K);
    rollouts_free(r, K);

    GroupCounts g[2] = {{.K = K}, {.K = K}};
    for (int i = 0; i < 2; i++) g[i].with = allocate((size_t)K + 1, sizeof(int));
    for (int i = 0; i < groups; i++) {
        r = generate(m, &q.list[i].prompt, 1, K, o->sample, tool_calculator, o->seed + 2, (uint64_t)i);
        reward_both(verified, by_length, r, K, q.list[i].truth, e);
        count_group(&g[0], verified), count_group(&g[1], by_length);
        rollouts_free(r, K);
    }
    printf("\n2. The first %d questions of %s, %d samples each:\n\n", groups, o->eval_data, K);
    print_group_counts(g);
    print_signal(g);
    printf("\n   The curve p^K + (1-p)^K bends upwards. So, on average over many runs, one p\n"
           "   for all questions, easy and hard, says too little, and each question's own\n"
           "   c/K, known from %d samples only, says too much.\n\n",
           K);
    printf("Take away: a group is lost when ALL its scores are equal, not when most are. An\n"
           "update of 16 questions of this kind has about %.1f that teach something.\n",
           16.0 * (groups - g[0].silent) / groups);
    free(g[0].with), free(g[1].with), free(verified), free(by_length);
    tokens_free(&prompt), questions_free(&q);
}

static const struct {
    const char* title;
    void (*run)(Model* m, const ExperimentOptions* e);
} experiments[] = {
    {"log pi(y|x) as a sum over tokens, and what a wrong mask prints", experiment_1},
    {"the KL penalty by hand: k1, k2, k3, sum or mean, beta from 0.001 to 0.1", experiment_2},
    {"eight samples of one question, and how many advantages are 0", experiment_3},
};
enum { EXPERIMENTS = sizeof experiments / sizeof *experiments };

static int command_experiment(int argc, char** argv) {
    ExperimentOptions e = {.rl = rl_defaults(), .shortest = 50, .longest = 100, .groups = 64};
    Option options[RL_OPTIONS] = {{0}};
    const char* which = NULL;
    e.rl.model = "out/run/rl", e.rl.num_samples = 8, e.rl.sample.top_k = 0;
    Option more[] = {
        {"question", OPTION_TEXT, &e.question, 0, 0, "instead of the first one of the data", 0, 0},
        {"answer", OPTION_TEXT, &e.rl.answer, 0, 0, "its right answer (experiment 3)", 0, 0},
        {"completion", OPTION_TEXT, &e.completion, 0, 0, "a reply to it; else one is sampled (1, 2)", 0, 0},
        {"data", OPTION_TEXT, &e.rl.eval_data, 0, 0, "questions", 0, 0},
        {"groups", OPTION_INT, &e.groups, 1, 1e6, "how many of them, from the top (3)", 0, 0},
        {"shortest", OPTION_INT, &e.shortest, 0, 1e6, "the length rule: rewarded from here, characters (3)",
         0, 0},
        {"longest", OPTION_INT, &e.longest, 0, 1e6, "to here (3)", 0, 0}};
    memcpy(options + sampling_options(options, &e.rl), more, sizeof more);
    if (asked_for_help(argc, argv, "experiment - the three experiments of D3, on any checkpoint",
                       "./rl experiment 1|2|3 [--option=value ...]", options))
        return 0;
    if (!parse_options(options, argc, argv, &which, 1)) {
        for (int i = 0; i < EXPERIMENTS; i++) printf("  %d  %s\n", i + 1, experiments[i].title);
        printf("\n./rl experiment N runs one on %s; --model-tag names another model\n"
               "(out/run/sft is the one before reinforcement learning), --help lists the rest.\n",
               e.rl.model);
        return 0;
    }
    if (strlen(which) != 1 || *which < '1' || *which > '0' + EXPERIMENTS)
        fail(2, "there is no experiment '%s'; there are 1 to %d", which, EXPERIMENTS);
    if (e.shortest > e.longest)
        fail(2, "--shortest %d is above --longest %d: no reply could be rewarded", e.shortest, e.longest);
    check_sampling(&e.rl);
    set_threads(e.rl.threads);
    Model m = load_tagged_model(e.rl.model);
    experiments[*which - '1'].run(&m, &e);
    model_free(&m);
    return 0;
}

// ---- lessons and warm-ups

static const struct { const char* title; void (*run)(void); } lessons[] = {
    {"The language of reinforcement learning", lesson_1},
    {"Two warm-ups: thermostat and CartPole", lesson_2},
    {"The language model as policy", lesson_3},
    {"Why it is a bandit", lesson_4},
    {"Rewards: the verifier", lesson_5},
    {"Rollouts and the tool", lesson_6},
    {"Advantages: better than average", lesson_7},
    {"The objective: reward minus beta KL", lesson_8},
    {"Losses", lesson_9},
    {"The training loop", lesson_10},
    {"Evaluation", lesson_11},
    {"Recipes", lesson_12},
};
enum { LESSONS = sizeof lessons / sizeof *lessons };

static int command_lesson(int argc, char** argv) {
    if (argc == 0 || !strcmp(argv[0], "--help") || !strcmp(argv[0], "-h")) {
        for (int i = 0; i < LESSONS; i++) printf("  %2d  %s\n", i + 1, lessons[i].title);
        printf("\n./rl lesson N prints one, ./rl lesson all prints all.\n");
        return 0;
    }
    if (argc > 1) fail(2, "one lesson at a time: ./rl lesson 7, or ./rl lesson all");
    char* end;
    long n = strtol(argv[0], &end, 10);
    if (!strcmp(argv[0], "all")) {
        for (int i = 0; i < LESSONS; i++) {
            if (i) printf("\n\n");
            lessons[i].run();
        }
        return 0;
    }
    if (*end || end == argv[0] || n < 1 || n > LESSONS)
        fail(2, "there is no lesson '%s'; there are 1 to %d, and all", argv[0], LESSONS);
    lessons[n - 1].run();
    return 0;
}

static uint64_t seed_argument(int argc, char** argv, const char* name, const char* what) {
    uint64_t seed = 1;
    Option options[] = {{"seed", OPTION_SEED, &seed, 0, 0, "of everything random", 0, 0}, {0}};
    char usage[64];
    snprintf(usage, sizeof usage, "./rl %s [--seed N]", name);
    if (asked_for_help(argc, argv, what, usage, options)) exit(end_of_output(0));
    parse_options(options, argc, argv, NULL, 0);
    return seed;
}

static int command_thermostat(int argc, char** argv) {
    run_thermostat(seed_argument(argc, argv, "thermostat", "thermostat - REINFORCE keeps a room at 70 F"));
    return 0;
}

static int command_cartpole(int argc, char** argv) {
    run_cartpole(
        seed_argument(argc, argv, "cartpole", "cartpole - group mean against value function on CartPole"));
    return 0;
}

// ---- commands made of commands: compare, overoptimize, recipe
//
// A stage is an ordinary command line. It is printed before it runs, so that it can be repeated by hand, and
// what it prints goes into a file. In a line of a recipe, @ stands for the directory of --out.

static int run_words(int argc, char** argv);   // at the end of this file, behind the table of commands

enum { STAGE_WORDS = 64 };

// Runs one line; its output goes to `log`. Returns its exit status. A line that is neither ./rl nor
// ./train_gpt goes to the shell.
static int run_logged(const char* line, const char* log) {
    char copy[PATH_SIZE], *words[STAGE_WORDS + 1];
    int count = 0, status;
    snprintf(copy, sizeof copy, "%s", line);
    for (char* word = strtok(copy, " "); word && count < STAGE_WORDS; word = strtok(NULL, " "))
        words[count++] = word;
    words[count] = NULL;
    fflush(stdout);
    FILE* file = fopen(log, "w");
    int screen = dup(1);
    if (!file || screen < 0 || dup2(fileno(file), 1) < 0)
        fail(1, "cannot write %s: %s", log, strerror(errno));
    status = run_words(count, words);
    if (status < 0) status = system(line) ? 1 : 0;
    int whole = fflush(stdout) == 0;
    dup2(screen, 1), close(screen);
    if (fclose(file) != 0 || !whole) fail(1, "cannot write %s: %s", log, strerror(errno));
    return status;
}

// Prints a command as a shell would take it, at most 78 columns wide.
static void print_command(const char* line) {
    int column = printf("  $");
    for (const char* word = line; *word; word += strspn(word, " ")) {
        int n = (int)strcspn(word, " ");
        if (column + 1 + n > 76) printf(" \\\n"), column = printf("     ");
        column += printf(" %.*s", n, word);
        word += n;
    }
    printf("\n");
    fflush(stdout);
}

// `format` with every @ replaced by `out`, printed and run; its output goes to OUT/stage-NUMBER.log. Returns
// the seconds it took; a stage that fails or is stopped ends the program.
static double run_stage(const char* out, int number, const char* format) {
    char line[PATH_SIZE], log[PATH_SIZE], name[32];
    size_t used = 0;
    for (const char* s = format; *s && used + strlen(out) + 1 < sizeof line; s++) {
        int n = *s == '@' ? (int)strlen(out) : 1;
        used += (size_t)snprintf(line + used, sizeof line - used, "%.*s", n, *s == '@' ? out : s);
    }
    if (used + strlen(out) + 1 >= sizeof line) fail(2, "the path %s is too long for a command line", out);
    snprintf(name, sizeof name, "stage-%d.log", number);
    join_path(log, out, name);
    print_command(line);
    double begin = seconds_now();
    int status = run_logged(line, log);
    if (status == 130)
        printf("  stopped in stage %d; how it goes on stands at the end of\n  %s. The command as a whole "
               "begins again with stage 1.\n", number, log);
    else if (status) printf("  stopped; %s has the stage's output\n", log);
    if (status) exit(end_of_output(status));
    return seconds_now() - begin;
}

// A path as run_stage() can put it into a line.
static const char* plain_path(const char* path, const char* option) {
    if (!*path || path[strcspn(path, " @\t\n'\"\\$`&|;<>()*?")])
        fail(2, "--%s '%s': the stages are command lines, so the name of a directory must be plain here",
             option, path);
    return path;
}

// One column of a metrics.csv, as numbers; empty fields are NaN. *rows is how many there are; to be freed.
static double* read_column(const char* folder, const char* name, int* rows) {
    char path[PATH_SIZE];
    join_path(path, folder, "metrics.csv");
    Text file = read_file(path);
    size_t header = strcspn(file.data, "\n");
    int column = 0, found = 0;
    for (const char* s = file.data; !found && s < file.data + header; column += !found) {
        size_t n = strcspn(s, ",\n");
        found = n == strlen(name) && !strncmp(s, name, n);
        s += n + 1;
    }
    if (!found) fail(2, "%s has no column '%s'", path, name);
    double* values = allocate(file.length, sizeof(double));
    *rows = 0;
    for (const char* line = file.data + header; *line && *++line; line += strcspn(line, "\n")) {
        const char *field = line, *end = line + strcspn(line, "\n");
        for (int i = 0; i < column; i++) field += strcspn(field, ",\n") + (field < end);
        values[(*rows)++] = *field == ',' || *field == '\n' || !*field ? NAN : strtod(field, NULL);
    }
    text_free(&file);
    return values;
}

// ---- ./rl compare

// What all stages have in common: where they begin, and on what they are measured.
typedef struct {
    RlOptions rl;
    const char* out;
    Model start;                          // also the reference of the KL
    Questions test;
    int stage;                            // number of the next one
} Series;

typedef struct {
    char name[24];
    Evaluation e;
    double updates, seconds, each;        // to the goal, and seconds per update; NaN = there is none
} SeriesRow;

static const double GOAL = 0.90;          // of held-out pass@1

static int series_options(Option* t, Series* s) {
    RlOptions* o = &s->rl;
    Option table[] = {
        {"out", OPTION_TEXT, &s->out, 0, 0, "directory for all that is made", 0, 0},
        {"eval-data", OPTION_TEXT, &o->eval_data, 0, 0, "questions to evaluate on", 0, 0},
        {"eval-examples", OPTION_INT, &o->eval_examples, 1, 1e9, "how many of them, from the top", 0, 0},
        {"num-samples", OPTION_INT, &o->num_samples, 2, 4096, "answers to each of them", 0, 0},
        {"seed", OPTION_SEED, &o->seed, 0, 0, "of everything random", 0, 0},
        {"threads", OPTION_INT, &o->threads, 0, 1024, "threads; 0 = all cores", 0, 0},
    };
    memcpy(t, table, sizeof table);
    return (int)(sizeof table / sizeof *table);
}

static void series_begin(Series* s, int has_start) {
    RlOptions* o = &s->rl;
    plain_path(s->out, "out");
    set_threads(o->threads);
    if (has_start) s->start = load_tagged_model(plain_path(o->model, "model-tag"));
    int context = has_start ? s->start.config.context : train_defaults().config.context;
    s->test = load_questions(o->eval_data, context, o->sample.max_new_tokens);
    make_folder(s->out);
}

static void series_end(Series* s) {
    if (s->start.weights.memory) model_free(&s->start);
    questions_free(&s->test);
}

static SeriesRow measure_model(Series* s, const char* name, Model* m) {
    const RlOptions* o = &s->rl;
    SeriesRow row = {.updates = NAN, .seconds = NAN, .each = NAN};
    snprintf(row.name, sizeof row.name, "%s", name);
    row.e = evaluate_model(m, &s->test, o->eval_examples, o->num_samples, o->sample, find_reward(o->reward),
                           s->start.weights.memory ? &s->start : NULL, o->seed + 2);
    return row;
}

static SeriesRow measure_folder(Series* s, const char* name, const char* folder) {
    Model m = load_fitting_model(folder);
    SeriesRow row = measure_model(s, name, &m);
    model_free(&m);
    return row;
}

// When a run reached the goal, from its log: the seconds are those of the updates, without the evaluations.
static void find_goal(SeriesRow* row, const char* folder) {
    int rows;
    double *test = read_column(folder, "test", &rows), *seconds = read_column(folder, "seconds", &rows),
           sum = 0.0;
    for (int i = 0; i < rows; i++) {
        sum += seconds[i];
        if (isnan(row->updates) && test[i] >= GOAL) row->updates = i + 1, row->seconds = sum;
    }
    row->each = sum / max_int(rows, 1);
    free(test), free(seconds);
}

// A number, or a dash for NaN, in `width` columns.
static void print_cell_number(int width, int digits, double x) {
    if (isnan(x)) printf("%*s", width, "-");
    else printf("%*.*f", width, digits, x);
}

static void print_series_row(const SeriesRow* row) {
    const Evaluation* e = &row->e;
    int last = e->samples - 1;
    printf("%-12s %6.3f %5.3f-%5.3f %7.3f %5.3f-%5.3f", row->name, e->pass[0], e->low[0], e->high[0],
           e->pass[last], e->low[last], e->high[last]);
    print_cell_number(6, 2, e->kl);
    print_cell_number(7, 1, e->length);
    print_cell_number(5, 0, row->updates);
    print_cell_number(6, 1, row->seconds);
    printf("\n");
}

static void print_series_head(const Series* s) {
    char k[24], goal[24];
    snprintf(k, sizeof k, "pass@%d", s->rl.num_samples), snprintf(goal, sizeof goal, "to %.2f", GOAL);
    printf("\n%-12s %6s %11s %7s %11s %5s %6s %11s\n", "", "", "", "", "", "", "", goal);
    printf("%-12s %6s %11s %7s %11s %5s %6s %4s %5s\n", "", "pass@1", "95% interv.", k, "95% interv.", "KL",
           "length", "upd.", "s");
}

static void append_series_row(Text* csv, const SeriesRow* row) {
    const Evaluation* e = &row->e;
    int last = e->samples - 1;
    if (!csv->length)
        text_printf(csv,
                    "name,pass_at_1,pass_at_1_low,pass_at_1_high,k,pass_at_k,pass_at_k_low,pass_at_k_high,"
                    "kl_reference,entropy,mean_length,tool_rate,format_rate,updates_to_goal,"
                    "seconds_to_goal,seconds_per_update\n");
    text_printf(csv, "%s,%.6g,%.6g,%.6g,%d,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g\n",
                row->name, e->pass[0], e->low[0], e->high[0], e->samples, e->pass[last], e->low[last],
                e->high[last], e->kl, e->entropy, e->length, e->tool_rate, e->format_rate, row->updates,
                row->seconds, row->each);
}

// The majority of all samples, as a row: no training, and num-samples times the cost of an answer.
static SeriesRow measure_votes(Series* s) {
    Ladder l = climb_ladder(&s->start, &s->test, &s->rl);
    const Rung* top = &l.rung[l.rungs - 1];
    SeriesRow row = {.e = l.pass, .updates = NAN, .seconds = NAN, .each = NAN};
    snprintf(row.name, sizeof row.name, "vote of %d", top->votes);
    row.e.pass[0] = top->right, row.e.low[0] = top->low, row.e.high[0] = top->high;
    row.e.kl = row.e.entropy = row.e.tool_rate = row.e.format_rate = NAN, row.e.length *= top->votes;
    return row;
}

static int command_compare(int argc, char** argv) {
    static const struct { const char *name, *line; } others[] = {
        {"dpo", "./rl dpo --model-tag %s --seed %llu --out @/dpo"},
        {"best-of-n", "./rl best-of-n --model-tag %s --seed %llu --out @/best-of-n"},
        {"best overall", "./rl best-of-n --keep overall --model-tag %s --seed %llu --out @/best-overall"},
        {"random", "./rl best-of-n --keep random --model-tag %s --seed %llu --out @/random"},
    };
    enum { OTHERS = sizeof others / sizeof *others };
    Series s = {.rl = rl_defaults(), .out = "out/compare"};
    SeriesRow row[METHODS + OTHERS + 2];
    Option options[RL_OPTIONS] = {{0}};
    char line[PATH_SIZE], folder[PATH_SIZE];
    int rows = 0, steps = 100;
    Text csv = {0};
    s.rl.eval_examples = 256;
    int n = series_options(options, &s);
    options[n++] = (Option){"model-tag", OPTION_TEXT, &s.rl.model, 0, 0, "model that all start from", 0, 0};
    options[n++] = (Option){"num-steps", OPTION_INT, &steps, 1, 1e6, "updates of each method", 0, 0};
    if (asked_for_help(argc, argv, "compare - every method from the same model, in one table",
                       "./rl compare [--option=value ...]", options))
        return 0;
    parse_options(options, argc, argv, NULL, 0);
    series_begin(&s, 1);
    double started = seconds_now();
    row[rows++] = measure_model(&s, "supervised", &s.start);
    row[rows++] = measure_votes(&s);
    for (int i = 0; i < METHODS; i++) {
        snprintf(line, sizeof line,
                 "./rl train --algo %s --model-tag %s --seed %llu --num-steps %d --eval-every 5 "
                 "--eval-examples 128 --eval-samples 2 --out @/%s",
                 methods[i].name, s.rl.model, (unsigned long long)s.rl.seed, steps, methods[i].name);
        run_stage(s.out, ++s.stage, line);
        join_path(folder, s.out, methods[i].name);
        row[rows] = measure_folder(&s, methods[i].name, folder);
        find_goal(&row[rows++], folder);
    }
    for (int i = 0; i < OTHERS; i++) {
        snprintf(line, sizeof line, others[i].line, s.rl.model, (unsigned long long)s.rl.seed);
        double seconds = run_stage(s.out, ++s.stage, line);
        join_path(folder, s.out, strrchr(others[i].line, '/') + 1);
        row[rows] = measure_folder(&s, others[i].name, folder);
        row[rows++].seconds = seconds;
    }
    print_series_head(&s);
    for (int i = 0; i < rows; i++) print_series_row(&row[i]), append_series_row(&csv, &row[i]);
    printf("\n%d held-out questions x %d answers. KL to the supervised model, in nats per answer;\nlength in "
           "tokens, of all %d answers for the vote. To %.2f: updates and seconds until\nheld-out pass@1 was "
           "first that high, looked at every 5 updates; without updates:\nseconds of the whole "
           "method. %.0f s in all, %.0f MB, seed %llu.\n",
           row[0].e.questions, s.rl.num_samples, s.rl.num_samples, GOAL, seconds_now() - started,
           peak_memory_mb(), (unsigned long long)s.rl.seed);
    write_file(s.out, "compare.csv", &csv);
    printf("wrote %s/compare.csv\n", s.out);
    for (int i = 0; i < rows; i++) evaluation_free(&row[i].e);
    text_free(&csv), series_end(&s);
    return 0;
}

// ---- ./rl overoptimize: a judge that can be fooled (D3 section 5)
//
// A reward model is a stand-in: it learned from pairs what people like, near the answers that it has seen.
// The judge here learned from people with a weakness, who like right answers and take 20 tokens more for as
// good as being right. A policy trained to please it first gets better, because being right does please it;
// then it finds what pleases it more, the share of right answers falls, and the judge's score goes on rising.
// (Gao et al. 2022 measure the same with language models as judges.) The KL penalty keeps the policy where
// the judge's pairs came from, and where its score still means something. A verifier cannot be pleased in
// another way than by being right, so with it there is nothing to prevent: nanochat and D2 need no KL term.
//
// One run charges the mean of the token penalties instead of their sum, as D3's code prints it: for an answer
// of 45 tokens the same beta is then 45 times cheaper, and holds nothing.

typedef struct {
    double beta;
    int mean, verifier;                   // 1 = the mean of the penalties; 1 = the verifier is the reward
    char name[32], folder[PATH_SIZE];
    int rows;
    double *reward, *right, *kl;          // (rows) smoothed
} Curve;

// Each value becomes the mean of the up to 2 half + 1 values around it.
static void smooth(double* x, int n, int half) {
    double* y = allocate((size_t)n, sizeof(double));
    for (int i = 0; i < n; i++) {
        int from = max_int(0, i - half), to = min_int(n - 1, i + half);
        for (int j = from; j <= to; j++) y[i] += x[j] / (to - from + 1);
    }
    memcpy(x, y, (size_t)n * sizeof(double));
    free(y);
}

static void read_curve(Curve* c) {
    c->reward = read_column(c->folder, "reward", &c->rows);
    c->right = read_column(c->folder, "right", &c->rows);
    c->kl = read_column(c->folder, "kl_reference", &c->rows);
    smooth(c->reward, c->rows, 2), smooth(c->right, c->rows, 2), smooth(c->kl, c->rows, 2);
}

static int highest(const double* x, int n) {
    int best = 0;
    for (int i = 1; i < n; i++) if (x[i] > x[best]) best = i;
    return best;
}

static void print_curves(const Curve* c, int count) {
    printf("\n%-20s  %-15s  %-32s %s\n", "", "judge's score", "right answers", "KL, nats");
    printf("%-20s  %7s %7s  %7s %7s %8s %7s %9s\n", "reward", "first", "last", "first", "best", "(update)",
           "last", "last");
    for (int i = 0; i < count; i++) {
        int last = c[i].rows - 1, best = highest(c[i].right, c[i].rows);
        printf("%-20s  %7.3f %7.3f  %7.3f %7.3f %8d %7.3f %9.2f\n", c[i].name, c[i].reward[0],
               c[i].reward[last], c[i].right[0], c[i].right[best], best + 1, c[i].right[last], c[i].kl[last]);
    }
}

static void plot_curve(const Curve* c) {
    double* x = allocate((size_t)c->rows, sizeof(double));
    for (int i = 0; i < c->rows; i++) x[i] = i + 1;
    printf("\n");
    print_plot(&(Plot){.title = c->name, .x_name = "update", .x = x, .y = {c->reward, c->right, c->kl},
                       .names = {"Score of the judge", "Right answers", "KL to the start"}, .series = 3,
                       .points = c->rows, .scaled = 1});
    free(x);
}

// Trains the policy of one curve, and reads its log.
static void run_curve(Curve* c, Series* s, int steps) {
    char line[PATH_SIZE], folder[40] = "verifier", penalty[80] = "";
    snprintf(c->name, sizeof c->name, "verifier");
    if (!c->verifier) {
        snprintf(c->name, sizeof c->name, "judge, beta %g%s", c->beta, c->mean ? " mean" : "");
        snprintf(folder, sizeof folder, "beta-%g%s", c->beta, c->mean ? "-mean" : "");
    }
    if (c->beta > 0.0)
        snprintf(penalty, sizeof penalty, "--beta %g --kl-in reward --kl-estimator k1 %s", c->beta,
                 c->mean ? "--kl-per token " : "");
    snprintf(line, sizeof line,
             "./rl train --reward %s %s--reference %s --model-tag %s --seed %llu --num-steps %d "
             "--eval-every 0 --out @/%s",
             c->verifier ? "gsm8k" : "model:@/judge", penalty, s->rl.model, s->rl.model,
             (unsigned long long)s->rl.seed, steps, folder);
    run_stage(s->out, ++s->stage, line);
    join_path(c->folder, s->out, folder);
    read_curve(c);
}

static int command_overoptimize(int argc, char** argv) {
    Curve curve[] = {{.beta = 0.0}, {.beta = 0.1},            {.beta = 0.3},
                     {.beta = 1.0}, {.beta = 0.3, .mean = 1}, {.verifier = 1}};
    enum { CURVES = sizeof curve / sizeof *curve };
    Series s = {.rl = rl_defaults(), .out = "out/overoptimize"};
    const char* judge = "wordy";
    int answers = s.rl.examples_per_step * s.rl.num_samples, steps = 80;   // answers: of an update
    Option options[RL_OPTIONS] = {{0}};
    char line[PATH_SIZE];
    Text csv = {0};
    int n = series_options(options, &s);
    options[n++] = (Option){"model-tag", OPTION_TEXT, &s.rl.model, 0, 0, "policy to start from", 0, 0};
    options[n++] = (Option){"num-steps", OPTION_INT, &steps, 2, 4096, "updates of each run", 0, 0};
    options[n++] = (Option){"judge", OPTION_TEXT, &judge, 0, 0, "who ranks the pairs: see ./rl pairs", 0, 0};
    if (asked_for_help(argc, argv, "overoptimize - what a policy does to a judge that can be fooled",
                       "./rl overoptimize [--option=value ...]", options))
        return 0;
    parse_options(options, argc, argv, NULL, 0);
    const Judge* j = find_judge(judge);
    series_begin(&s, 1);
    printf("The judge is a reward model. Its pairs: %s.\n\n", j->what);
    double started = seconds_now();
    snprintf(line, sizeof line, "./rl reward-model --judge %s --model-tag %s --seed %llu --out @/judge",
             judge, s.rl.model, (unsigned long long)s.rl.seed);
    run_stage(s.out, ++s.stage, line);
    for (int i = 0; i < CURVES; i++) run_curve(&curve[i], &s, steps);
    print_curves(curve, CURVES);
    plot_curve(&curve[0]), plot_curve(&curve[2]);
    text_printf(&csv, "reward,beta,mean_per_token,update,score,right,kl_reference\n");
    for (int i = 0; i < CURVES; i++)
        for (int t = 0; t < curve[i].rows; t++)
            text_printf(&csv, "%s,%g,%d,%d,%.6g,%.6g,%.6g\n", curve[i].verifier ? "verifier" : "judge",
                        curve[i].beta, curve[i].mean, t + 1, curve[i].reward[t], curve[i].right[t],
                        curve[i].kl[t]);
    write_file(s.out, "overoptimize.csv", &csv);
    printf("\nMeans over 5 updates, of the %d answers sampled for each. %.0f s in all.\nwrote "
           "%s/overoptimize.csv\n",
           answers, seconds_now() - started, s.out);
    for (int i = 0; i < CURVES; i++) free(curve[i].reward), free(curve[i].right), free(curve[i].kl);
    text_free(&csv), series_end(&s);
    return 0;
}

// ---- ./rl recipe

static void print_recipe_row(const char* stage, double seconds, const SeriesRow* row) {
    printf("%-30s %6.1f", stage, seconds);
    if (row) {
        const Evaluation* e = &row->e;
        printf("  %6.3f %5.3f-%5.3f %7.3f %6.3f %6.3f", e->pass[0], e->low[0], e->high[0],
               e->pass[e->samples - 1], e->tool_rate, e->format_rate);
    }
    printf("\n");
}

static int command_recipe(int argc, char** argv) {
    Series s = {.rl = rl_defaults(), .out = NULL};
    const char* name = NULL;
    Option options[RL_OPTIONS] = {{0}};
    enum { MOST = 16 };
    SeriesRow row[MOST];
    const Miniature* stage[MOST];
    double seconds[MOST];
    char line[PATH_SIZE], folder[PATH_SIZE], out[PATH_SIZE];
    int count = 0;
    Text csv = {0}, names = {0};
    s.rl.eval_examples = 256;
    series_options(options, &s);
    for (int i = 0; i < MINIATURES; i++)
        if (!i || strcmp(miniatures[i].recipe, miniatures[i - 1].recipe))
            text_printf(&names, "%s%s", i ? ", " : "", miniatures[i].recipe);
    if (asked_for_help(argc, argv, "recipe - the stages of a recipe in miniature, one command each",
                       "./rl recipe instructgpt|tulu3|r1|r1-zero [--option=value ...]", options))
        return 0;
    if (!parse_options(options, argc, argv, &name, 1))
        fail(2, "a recipe is missing; choose one of %s", names.data);
    for (int i = 0; i < MINIATURES && count < MOST; i++)
        if (!strcmp(miniatures[i].recipe, name)) stage[count++] = &miniatures[i];
    if (!count) fail(2, "there is no recipe '%s'; choose one of %s", name, names.data);
    if (!s.out) snprintf(out, sizeof out, "out/%s", name), s.out = out;
    series_begin(&s, 0);
    double started = seconds_now();
    for (int i = 0; i < count; i++) {
        if (!strncmp(stage[i]->line, "./", 2))
            snprintf(line, sizeof line, "%s --seed %llu", stage[i]->line, (unsigned long long)s.rl.seed);
        else snprintf(line, sizeof line, "%s", stage[i]->line);
        seconds[i] = run_stage(s.out, ++s.stage, line);
        if (!stage[i]->model) continue;
        join_path(folder, s.out, stage[i]->model);
        row[i] = measure_folder(&s, stage[i]->stage, folder);
        append_series_row(&csv, &row[i]);
    }
    snprintf(folder, sizeof folder, "pass@%d", s.rl.num_samples);
    printf("\n%-30s %6s  %6s %11s %7.7s %6s %6s\n", "stage", "s", "pass@1", "95% interv.", folder, "tool",
           "format");
    for (int i = 0; i < count; i++)
        print_recipe_row(stage[i]->stage, seconds[i], stage[i]->model ? &row[i] : NULL);
    printf("\n%d held-out questions x %d answers after each stage. %.0f s in all, %.0f MB, seed %llu.\n",
           min_int(s.rl.eval_examples, s.test.count), s.rl.num_samples, seconds_now() - started,
           peak_memory_mb(), (unsigned long long)s.rl.seed);
    write_file(s.out, "recipe.csv", &csv);
    printf("wrote %s/recipe.csv\n", s.out);
    for (int i = 0; i < count; i++) if (stage[i]->model) evaluation_free(&row[i].e);
    text_free(&csv), text_free(&names), series_end(&s);
    return 0;
}

// ---- the table of commands, and main

static const struct { const char *name, *what; int (*run)(int argc, char** argv); } commands[] = {
    {"run", "the whole story: supervised training, RL, before and after", command_run},
    {"train", "reinforcement learning from a checkpoint", command_train},
    {"algos", "the methods of `train`, and what makes them different", command_algos},
    {"pairs", "which of two answers is better, as a file for the next two", command_pairs},
    {"reward-model", "a judge that learns from pairs", command_reward_model},
    {"dpo", "a policy that learns from pairs", command_dpo},
    {"best-of-n", "samples many answers, keeps the best, trains on them", command_best_of_n},
    {"eval", "pass@k of a checkpoint on held-out questions", command_eval},
    {"compare", "every method from the same model, in one table", command_compare},
    {"overoptimize", "what a policy does to a judge that can be fooled", command_overoptimize},
    {"recipe", "InstructGPT, Tulu 3, R1 and R1-Zero in miniature", command_recipe},
    {"vote", "majority vote of many answers, instead of training", command_vote},
    {"elicit", "pass@k before and after: did training teach, or only elicit?", command_elicit},
    {"grade", "judges a file of anybody's answers, or explains one verdict", command_grade},
    {"overlap", "which questions of one file also stand in another", command_overlap},
    {"sample", "answers to your own question", command_sample},
    {"trace", "one question: its rollouts, and one of them token by token", command_trace},
    {"experiment", "the three experiments of D3, on any checkpoint", command_experiment},
    {"lesson", "the worked numbers of a chapter: lesson 7, lesson all", command_lesson},
    {"claims", "what the three documents say, checked statement by statement", command_claims},
    {"thermostat", "chapter 2: a thermostat that learns", command_thermostat},
    {"cartpole", "chapter 2: a pole that learns to stand", command_cartpole},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

// Runs the command argv[1]; returns its exit status, or -1 when there is none of this name.
static int dispatch(int argc, char** argv) {
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(argv[1], commands[i].name)) return commands[i].run(argc - 2, argv + 2);
    return -1;
}

// A command line as words: ./rl COMMAND ..., or ./train_gpt ...; returns its exit status, or -1 when it is
// neither.
static int run_words(int argc, char** argv) {
    if (argc > 0 && !strcmp(argv[0], "./train_gpt")) {
        TrainOptions o = train_defaults();
        Option options[TRAIN_OPTIONS] = {{0}};
        train_options(options, &o);
        parse_options(options, argc - 1, argv + 1, NULL, 0);
        return train(&o, options, NULL);
    }
    return argc < 2 || strcmp(argv[0], "./rl") ? -1 : dispatch(argc, argv);
}

#ifndef RL_NO_MAIN
int main(int argc, char** argv) {
    open_standard_streams();
    if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        printf("rl - reinforcement learning for language models\n\nusage: ./rl COMMAND [--help] "
               "[--option=value ...]\n\n");
        for (int i = 0; i < COMMANDS; i++) printf("  %-13s %s\n", commands[i].name, commands[i].what);
        return end_of_output(argc < 2 ? 2 : 0);
    }
    int status = dispatch(argc, argv);
    if (status < 0) fail(2, "there is no command '%s'; ./rl --help lists them", argv[1]);
    return end_of_output(status);
}
#endif
