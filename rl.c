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

// The row function log_sum_exp(z, V) stands in train_gpt.c, section 4, since the model uses it too; so does shift_mask(), in
// section 12: out[b,t] = mask[b,t+1]. The mask moves with the tokens.

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
            *out = next < 0 || next >= V ? (float)NAN : (float)(z[next] - log_sum_exp(z, V));
        }
    }
}

// Entropy H = -sum over v of p_v log p_v of each row, in nats: 0 when the model is certain, log V when it has
// no idea. entropy (N), logits (N,V), not shifted. With l_v = log p_v = z_v - log_sum_exp(z). N <= 0 writes
// nothing; p = 0 (a logit of -inf, or far below the largest) adds 0, as its limit does, not 0 * inf = NaN.
void token_entropy(float* entropy, const float* logits, int N, int V) {
    for (int n = 0; n < N; n++) {
        const float* z = logits + (size_t)n * (size_t)V;
        entropy[n] = row_entropy(z, log_sum_exp(z, V), V);
    }
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
       EVALUATION_POINTS = 3 };

/* ---- 5.1 Extract ---- */

static int is_digit(char c) { return c >= '0' && c <= '9'; }
static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static int is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

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

// The number behind the last #### of text, on the same line, without currency sign and thousands separators:
// "#### **$1,080.50** in all" gives "1080.50". What follows the number doesn't matter. out and cap as above.
// 1 = found; 0 = no ####, or no number behind the last one, even if there was one behind an earlier one. D1
// says the last ####; the code that D1 describes searches for the first. They differ when a response corrects
// itself.
int extract_hash_answer(const char* text, char* out, int cap) {
    const char* mark = NULL;
    if (cap > 0) out[0] = 0;
    for (const char* p = strstr(text, "####"); p; p = strstr(p + 1, "####")) mark = p;
    if (!mark) return 0;
    mark += 4;
    while (*mark == ' ' || *mark == '\t' || *mark == '*') mark++;  // ** is bold in Markdown
    if (read_number(&mark, out, cap)) return 1;
    if (cap > 0) out[0] = 0;
    return 0;
}

// The forgiving extraction, which the reward does NOT use: the box, else the last number, else the whole
// text. Good for measuring what a model knows, useless for teaching a format. 1 = box, 2 = last number, 3 =
// whole text, 0 = nothing there, or it doesn't fit.
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

// 1 when the last \boxed{...} of response equals truth, else 0. truth is the bare answer, such as "83".
// Without a box, or with nothing in it, the reward is 0, whatever else the response says. D2 section 4.
float reward_boxed(const char* response, const char* truth) {
    char answer[MAX_ANSWER + 1];
    return extract_boxed(response, answer, sizeof answer) && answers_equal(answer, truth) ? 1.0f : 0.0f;
}

// 1 when the number behind the last #### of response equals the truth, else 0. truth is the bare number, or a
// whole reference solution that ends in "#### 42" (D1). Numbers are compared, not strings: 42, 42., 42.00 and
// $42.
float reward_gsm8k(const char* response, const char* truth) {
    char answer[64], expected[64];
    if (!extract_hash_answer(response, answer, sizeof answer)) return 0.0f;
    if (extract_hash_answer(truth, expected, sizeof expected)) truth = expected;
    return answers_equal(answer, truth) ? 1.0f : 0.0f;
}

/* ---- Lesson 5 ---- */

// Two rewards that the lesson warns of. Partial credit pays 1 for right and boxed, 0.5 for right without a
// box, 0.1 for a box with something wrong in it.
static float reward_partial(const char* response, const char* truth) {
    char answer[MAX_ANSWER + 1];
    if (reward_boxed(response, truth) == 1.0f) return 1.0f;
    if (extract_boxed(response, answer, sizeof answer)) return 0.1f;
    return extract_lenient(response, answer, sizeof answer) && answers_equal(answer, truth) ? 0.5f : 0.0f;
}

// Format only pays 1 for a box, whatever is in it.
static float reward_format(const char* response, const char* truth) {
    char answer[MAX_ANSWER + 1];
    (void)truth;
    return extract_boxed(response, answer, sizeof answer) ? 1.0f : 0.0f;
}

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
 * In memory. The K rollouts of a question are rows of arrays, ids (K,T) and mask (K,T): prompt, answer, padding. It is the
 * shape of chapter 3, and everything that follows keeps it. (That the prompt is computed once for all K rows, and that padding
 * costs nothing, is hidden behind answers_forward() in train_gpt.c.)
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

// The text of a rollout's answer, special tokens by name: what the reward function reads. Lives until text_free().
static Text rollout_text(const Rollout* r) {
    Text text = {0};
    decode_tokens(&text, r->ids + r->prompt, r->length, 1);
    return text;
}

// Did the tool answer in this rollout? (The tool writes <|output_start|> with mask 0; the model's own has
// mask 1.)
static int used_tool(const Rollout* r) {
    for (int t = r->prompt; t < r->prompt + r->length; t++)
        if (r->ids[t] == OUTPUT_START && !r->mask[t]) return 1;
    return 0;
}

// ---- a rollout, token by token

// A token sequence, fit for a terminal: calls of the tool as [17+26 -> 43], bytes that are no text as \xNN.
static void append_readable(Text* out, const char* text) {
    static const char *const start = "<|python_start|>", *const end = "<|python_end|>",
                             *const from = "<|output_start|>", *const to = "<|output_end|>";
    text_append(out, "", 0);
    for (const char *s = text, *stop = text + strlen(text); s < stop;) {
        const char *e = strstr(s, end), *o = e ? e + strlen(end) : NULL, *t = o ? strstr(o, to) : NULL;
        if (!strncmp(s, start, strlen(start)) && t && !strncmp(o, from, strlen(from))) {
            s += strlen(start);
            o += strlen(from);
            text_append(out, "[", 1);
            append_printable(out, s, (size_t)(e - s));
            text_append(out, " -> ", 4);
            append_printable(out, o, (size_t)(t - o));
            text_append(out, "]", 1);
            s = t + strlen(to);
            continue;
        }
        const char* end_name = special_names[ASSISTANT_END - 256];
        if (!strncmp(s, end_name, strlen(end_name))) {
            s += strlen(end_name);
            continue;
        }
        int n = max_int(1, utf8_length(s, stop));
        append_printable(out, s, (size_t)n);
        s += n;
    }
}

// A token as it may be printed in a table: text[] holds at least 24 characters.
static const char* token_text(char* text, int id) {
    if (id >= 256) snprintf(text, 24, "%s", id < VOCAB_SIZE ? special_names[id - 256] : "?");
    else if (id == '\n') snprintf(text, 24, "'\\n'");
    else if (id >= 0x20 && id < 0x7F) snprintf(text, 24, "'%c'", id);
    else snprintf(text, 24, "\\x%02X", (unsigned)id);
    return text;
}

// The state of the tool behind token t of a rollout's row; t counts from the prompt on.
static const char* tool_state_name(const Rollout* r, int t) {
    static const char* const names[] = {"idle", "reading", "called"};
    int from;
    return r->mask[t] ? names[tool_state(r->ids + r->prompt, t + 1 - r->prompt, &from)] : "answers";
}

// A rollout that follows a script instead of a model: each token of the script counts as sampled, and the tool answers where
// it is called. Lives until rollouts_free().
static Rollout* play_script(const Tokens* prompt, const int* script, int length) {
    Rollout* r = rollouts_new(1, prompt->length + length + EXPRESSION_SIZE);
    rollout_begin(r, prompt);
    int* answer = r->ids + r->prompt;
    for (int i = 0; i < length; i++) {
        r->mask[r->prompt + r->length] = 1;
        answer[r->length++] = script[i];
        int room = r->T - r->prompt - r->length - (length - i);
        r->length += tool_calculator(answer + r->length, room, answer, r->length);
    }
    r->finished = length > 0 && script[length - 1] == ASSISTANT_END;
    return r;
}

// log pi of each sampled token of K rollouts under a model; logp (K,T1), 0 where the mask is 0.
static void score_rollouts(float* logp, Model* m, const Rollout* rollouts, int K) {
    int T = rollouts->T;
    int* mask = allocate((size_t)K * (size_t)T, sizeof(int));
    shift_mask(mask, rollouts->mask, K, T);
    answers_forward(logp, m, rollouts->ids, mask, K, T);
    free(mask);
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

// A rollout as a table: one line per token, and the sums in the last line. Column m is the mask, column tool the state of the
// tool behind the token. The arrays (T1) are shifted: [t-1] belongs to token t.
//   logp    log pi of each sampled token, nats
//   other   the same under a second model or after an update, or NULL; names (3): titles of the two and of their difference
//   dlogp   d(loss)/d(logp), or NULL; printed in thousandths
static void print_tokens(const Rollout* r, const float* logp, const float* other, const char* const* names,
                         const float* dlogp) {
    int width = other && dlogp ? 17 : 19;
    double sum = 0.0, sum_other = 0.0;
    char text[24], left[64];
    printf("  t  id %-*s who     m %7s", width, "token", other ? names[0] : "log pi");
    if (other) printf(" %7s %7s", names[1], names[2]);
    printf("%s tool\n", dlogp ? "   dlogp" : "");
    for (int t = r->prompt; t < r->prompt + r->length; t++) {
        int sampled = r->mask[t];
        printf("%3d %3d %-*.*s %-7s %d", t - r->prompt, r->ids[t], width, width, token_text(text, r->ids[t]),
               sampled ? "sampled" : "forced", sampled);
        print_nats(logp[t - 1], sampled);
        if (other) print_nats(other[t - 1], sampled);
        if (other) print_change((double)other[t - 1] - logp[t - 1], sampled);
        if (dlogp) print_nats(0.0 + 1e3 * dlogp[t - 1], 1);
        printf(" %s\n", tool_state_name(r, t));
        if (!sampled) continue;
        sum += logp[t - 1];
        sum_other += other ? other[t - 1] : 0.0f;
    }
    snprintf(left, sizeof left, "sum over %d sampled of %d", count_masked(r->mask, r->T), r->length);
    printf("%-*s", width + 18, left);
    print_nats(sum, 1);
    if (other) print_nats(sum_other, 1);
    if (other) print_change(sum_other - sum, 1);
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
    Rollout* r = play_script(&prompt, script.ids, script.length);
    Config small = train_defaults().config;
    small.layers = 1;
    Model m = model_new(small);
    model_init(&m, 6);
    score_rollouts(r->logp, &m, r, 1);

    printf("LESSON 6. Rollouts and the tool (D1)\n\n");
    printf(
        "Question: %s\n\nThe answer below follows a script, so that the lesson needs no trained model;\nthe ",
        question);
    printf("log-probabilities are those of an untrained one (about -ln %d = %.2f\neach). The tool is the "
           "real one.\n\n",
           VOCAB_SIZE, -log(VOCAB_SIZE));
    print_tokens(r, r->logp, NULL, NULL, NULL);
    int sampled = count_masked(r->mask, r->T);
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
    rollouts_free(r);
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

// One dispatcher for all: what the trainer's --advantage names, lesson 7 prints and the proofs enumerate. gae is not among them:
// it gives each token an advantage of its own. eps is verl's 1e-6 (D3 prints 1e-8, TRL has 1e-4): large enough that rewards
// which differ by float rounding alone, 6e-8, are not blown up to +-1.
enum { ADVANTAGE_NONE, ADVANTAGE_CENTERED, ADVANTAGE_RLOO, ADVANTAGE_GRPO, ADVANTAGE_GAE };

static void compute_advantages(float* adv, const float* reward, int K, int kind) {
    if (kind == ADVANTAGE_NONE) memcpy(adv, reward, (size_t)K * sizeof(float));
    if (kind == ADVANTAGE_CENTERED) advantages_centered(adv, reward, K);
    if (kind == ADVANTAGE_RLOO) advantages_rloo(adv, reward, K);
    if (kind == ADVANTAGE_GRPO) advantages_grpo(adv, reward, K, 1e-6f);
}

// One advantage per answer, adv (K), to each of its sampled tokens: out (K,T1), 0 where the mask (K,T1) is 0. D3 section 4.
void broadcast_advantages(float* out, const float* adv, const int* mask, int K, int T1) {
    for (int k = 0; k < K; k++)
        for (int i = k * T1; i < (k + 1) * T1; i++) out[i] = mask[i] ? adv[k] : 0.0f;
}

// GAE along the sampled tokens of each answer: what the tool wrote is no step of the policy. All arrays (K,T1); reward and value
// belong to the token that was sampled there, adv is 0 where the mask is 0.
static void group_gae(float* adv, const float* reward, const float* value, const int* mask, int K, int T1, float gamma,
                      float lambda) {
    float* step_adv = allocate(3 * (size_t)T1, sizeof(float));
    float *step_reward = step_adv + T1, *step_value = step_reward + T1;
    for (int k = 0; k < K; k++) {
        int n = 0;
        for (int i = k * T1; i < (k + 1) * T1; i++) {
            if (!mask[i]) continue;
            step_reward[n] = reward[i];
            step_value[n++] = value[i];
        }
        advantages_gae(step_adv, step_reward, step_value, n, gamma, lambda);
        n = 0;
        for (int i = k * T1; i < (k + 1) * T1; i++) adv[i] = mask[i] ? step_adv[n++] : 0.0f;
    }
    free(step_adv);
}

// Probability that K answers with a chance p each make a zero-variance group: all right or all wrong.
static double no_signal_odds(double p, int K) { return pow(p, K) + pow(1.0 - p, K); }

// The same by playing it: share of groups in which the largest absolute centered advantage is 0.
static double no_signal_sampled(double p, int K, int groups, Rng* rng) {
    int zero = 0;
    for (int g = 0; g < groups; g++) {
        float reward[64], adv[64], largest = 0.0f;
        for (int k = 0; k < K; k++) reward[k] = random_uniform(rng) < p ? 1.0f : 0.0f;
        advantages_centered(adv, reward, K);
        for (int k = 0; k < K; k++) if (fabs(adv[k]) > largest) largest = (float)fabs(adv[k]);
        zero += largest == 0.0f;
    }
    return (double)zero / groups;
}

enum { RULE_CENTERED, RULE_GRPO, RULE_GRPO_POPULATION, RULE_RLOO, RULES };

static const char* const rule_names[RULES] = {"centered", "GRPO sample", "GRPO popul.", "RLOO"};

static void advantages_by_rule(float* adv, const float* reward, int K, int rule) {
    static const int kinds[RULES] = {ADVANTAGE_CENTERED, ADVANTAGE_GRPO, -1, ADVANTAGE_RLOO};
    if (rule == RULE_GRPO_POPULATION) advantages_standardized(adv, reward, K, K, 1e-6);
    else compute_advantages(adv, reward, K, kinds[rule]);
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
            compute_advantages(adv, reward, 8, ADVANTAGE_GRPO);
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
    if (estimator != 3) { *slope = (double)NAN; return (double)NAN; }
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

// The KL penalty in the reward, token by token: -beta kl on each sampled token and, on an answer's last one, its reward.
//   out (K,T1)      in units of the reward; summed over an answer it is the reward minus beta times its KL
//   reward (K)      of the whole answers;  kl (K,T1): one of the estimates above, or NULL: no penalty
//   mask (K,T1)     an answer without sampled tokens keeps nothing;  beta: units of reward per nat
//   mean            1 = the mean over the answer's tokens instead of their sum, as D3's code has it
// Masked entries of kl are not read. Ziegler et al. (2019); D3 section 5.
void token_rewards(float* out, const float* reward, const float* kl, const int* mask, int K, int T1, float beta, int mean) {
    for (int k = 0; k < K; k++) {
        int last = -1, count = mean ? count_masked(mask + k * T1, T1) : 1;
        for (int i = k * T1; i < (k + 1) * T1; i++) {
            out[i] = mask[i] && kl ? -beta * kl[i] / (float)count : 0.0f;
            if (mask[i]) last = i;
        }
        if (last >= 0) out[last] += reward[k];
    }
}

// The KL penalty in the loss, to be multiplied by beta and added to the loss of chapter 9.
//   dlogp (n)              out: d(loss)/d(logp), as autograd would give it: k1 -> 1, k2 -> log_ratio, k3 -> 1 - pi_ref/pi
//   logp, logp_ref (n)     nats per token;  estimator 1, 2 or 3, anything else gives NaN
//   w (n)                  what each token counts, token_weights() in train_gpt.c: where it is 0, dlogp is 0 and nothing is read
// Returns nats. The chapter head says what each gradient is worth. Shao et al. (2024), equation 4 (k3).
double loss_kl(float* dlogp, const float* logp, const float* logp_ref, const float* w, int n, int estimator) {
    double loss = 0.0, slope;
    for (int i = 0; i < n; i++) {
        dlogp[i] = 0.0f;
        if (w[i] == 0.0f) continue;
        loss += w[i] * kl_estimate(&slope, (double)logp[i] - logp_ref[i], estimator);
        dlogp[i] = (float)(w[i] * slope);
    }
    return loss;
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
    float logp[LONGEST], logp_ref[LONGEST], dlogp[LONGEST], w[LONGEST];
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
        token_weights(w, mask, 1, lengths[i], NORM_SEQUENCE_SUM, 0);
        double sum = loss_kl(dlogp, logp, logp_ref, w, lengths[i], 3);
        token_weights(w, mask, 1, lengths[i], NORM_SEQUENCE_MEAN, 0);
        double mean = loss_kl(dlogp, logp, logp_ref, w, lengths[i], 3);
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

// Every loss below has the same form. It goes through n tokens, flat, whatever their shape was; w says what each token counts
// (token_weights() in train_gpt.c, where also loss_sft stands), and where it is 0 the derivative is 0 and nothing else is read:
// padding may hold anything. Arrays: dlogp (n) out, d(loss)/d(logp); logp, log_ratio (n) in nats; adv (n) the advantage of each
// token, a constant through which no gradient flows; w (n). All return the loss.

// The policy gradient (REINFORCE):  L = - A logp. The value of this loss has no meaning of its own.
// Williams (1992); Sutton and Barto, section 13.3; D1.
double loss_policy_gradient(float* dlogp, const float* logp, const float* adv, const float* w, int n) {
    double loss = 0.0;
    for (int i = 0; i < n; i++) {
        dlogp[i] = 0.0f;
        if (w[i] == 0.0f) continue;
        loss -= (double)w[i] * adv[i] * logp[i];
        dlogp[i] = -w[i] * adv[i];
    }
    return loss;
}

// The ratio as a logarithm, log(pi / pi_old), of each token (PPO). out, logp, logp_old, mask (K,T1); 0 where the mask is 0.
void token_log_ratio(float* out, const float* logp, const float* logp_old, const int* mask, int K, int T1) {
    for (int i = 0; i < K * T1; i++) out[i] = mask[i] ? logp[i] - logp_old[i] : 0.0f;
}

// GSPO: the mean of the token log-ratios over the answer, for each of its tokens. Zheng et al. (2025), equation 7.
void sequence_log_ratio(float* out, const float* logp, const float* logp_old, const int* mask, int K, int T1) {
    token_log_ratio(out, logp, logp_old, mask, K, T1);
    for (int k = 0; k < K; k++) {
        float mean = (float)masked_mean(out + k * T1, mask + k * T1, T1);
        for (int i = k * T1; i < (k + 1) * T1; i++) out[i] = mask[i] ? mean : 0.0f;
    }
}

// x held between low and high; a NaN stays a NaN.
static double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

// Does the clip hold this token? Only where it has gone far enough in the direction that its advantage asks for.
static int is_clipped(double ratio, double adv, double clip_low, double clip_high) {
    return (adv > 0.0 && ratio > 1.0 + clip_high) || (adv < 0.0 && ratio < 1.0 - clip_low);
}

// PPO's clipped loss:  L = - min( rho A, clip(rho, 1 - clip_low, 1 + clip_high) A ),  rho = exp(log_ratio). With
// sequence_log_ratio() it is GSPO's: there each token's weight is 1/(K |y|) and ds/dlogp_t = s/|y|, so that the flat derivative
// -w s A is exact. (With GAE's advantages, which differ within an answer, that would be GSPO-token.)
// clip_low, clip_high: 0.2 and 0.2 (PPO), 0.2 and 0.28 (DAPO). Exactly on a bound the gradient is the unclipped one.
// Log-ratios above 80: see bounded_exp, finite. Schulman et al. (2017), equation 7; Yu et al. (2025) for two bounds.
double loss_clip(float* dlogp, const float* log_ratio, const float* adv, const float* w, int n, float clip_low,
                 float clip_high) {
    double loss = 0.0, slope;
    for (int i = 0; i < n; i++) {
        dlogp[i] = 0.0f;
        if (w[i] == 0.0f) continue;
        double ratio = bounded_exp(&slope, log_ratio[i]);
        int clipped = is_clipped(ratio, adv[i], clip_low, clip_high);
        loss -= w[i] * (clipped ? clamp(ratio, 1.0 - clip_low, 1.0 + clip_high) : ratio) * adv[i];
        if (!clipped) dlogp[i] = (float)(-w[i] * slope * adv[i]);
    }
    return loss;
}

// CISPO:  L = - stop(clip(rho)) A logp. The clipped ratio is a weight, held constant: no token's gradient is ever switched off.
// MiniMax (2025), equation 4.
double loss_cispo(float* dlogp, const float* logp, const float* log_ratio, const float* adv, const float* w, int n,
                  float clip_low, float clip_high) {
    double loss = 0.0, slope;
    for (int i = 0; i < n; i++) {
        dlogp[i] = 0.0f;
        if (w[i] == 0.0f) continue;
        double weight = w[i] * clamp(bounded_exp(&slope, log_ratio[i]), 1.0 - clip_low, 1.0 + clip_high);
        loss -= weight * adv[i] * logp[i];
        dlogp[i] = (float)(-weight * adv[i]);
    }
    return loss;
}

// PPO's value loss: half the squared error of the value or, if it is larger, that of the value held within `clip` of its older
// self; clip <= 0: the plain squared error. dvalue (n) out: d(loss)/d(value); value, value_old, target (n) in units of the
// reward, target: the return that the value is to predict. Schulman's PPO code (OpenAI baselines); Ouyang et al. (2022).
double loss_value(float* dvalue, const float* value, const float* value_old, const float* target, const float* w, int n,
                  float clip) {
    double loss = 0.0;
    for (int i = 0; i < n; i++) {
        dvalue[i] = 0.0f;
        if (w[i] == 0.0f) continue;
        double error = (double)value[i] - target[i];
        double held = value_old[i] + clamp((double)value[i] - value_old[i], -clip, clip) - target[i];
        int clipped = clip > 0.0f && held * held > error * error;
        loss += 0.5 * w[i] * (clipped ? held * held : error * error);
        if (!clipped) dvalue[i] = (float)(w[i] * error);
    }
    return loss;
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
int best_of_n(const float* reward, int n) {
    int best = -1;
    for (int i = 0; i < n; i++)
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
    float dlogp[B * T1], token_adv[B * T1], w[B * T1];
    broadcast_advantages(token_adv, adv, mask, B, T1);
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
        token_weights(w, mask, B, T1, norm, 0);
        double loss = loss_policy_gradient(dlogp, logp, token_adv, w, B * T1);
        printf("   %-14s  %7.4f   %7.4f  %7.4f  %7.4f    %7.4f   %7.4f\n", names[norm], loss, dlogp[0],
               dlogp[1], dlogp[2], dlogp[T1], dlogp[T1 + 1]);
    }
    printf("\n   Same data, three gradients. The sequence mean gives each token of the long\n"
           "   answer a third of the weight of the short answer's token; the others do not.\n"
           "   nanochat is the first line, over the answers to one question.\n\n");
}

static void lesson_9_clip(void) {
    const double ratios[] = {0.5, 1.0, 1.5};
    const float low = 0.2f, high = 0.28f, w[1] = {1.0f};
    printf("2. Clipping to [%.2f, %.2f]: sign of the advantage x side of the ratio\n\n", 1.0 - low,
           1.0 + high);
    printf("   advantage   ratio   ratio*A   clipped*A     loss   d/dlogp\n");
    for (int sign = 1; sign >= -1; sign -= 2) {
        for (int i = 0; i < 3; i++) {
            float dlogp[1], adv[1] = {(float)sign}, log_ratio[1] = {(float)log(ratios[i])};
            double loss = loss_clip(dlogp, log_ratio, adv, w, 1, low, high);
            double clipped = clamp(ratios[i], 1.0 - low, 1.0 + high);
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
    float logp[T1], d[3][T1], w[T1], of_tokens[T1], of_answer[T1];
    double sum = 0.0;
    for (int t = 0; t < T1; t++) {
        logp[t] = logp_old[t] + drift[t];
        sum += drift[t];
    }
    token_weights(w, mask, 1, T1, NORM_SEQUENCE_MEAN, 0);
    token_log_ratio(of_tokens, logp, logp_old, mask, 1, T1);
    sequence_log_ratio(of_answer, logp, logp_old, mask, 1, T1);
    printf("   An answer of three tokens that an earlier step has moved; bounds %g\n\n",
           (double)low);
    printf("   ratio of each token     %7.4f  %7.4f  %7.4f\n", exp(drift[0]), exp(drift[1]), exp(drift[2]));
    printf("   GSPO: exp(mean log)     %7.4f, for all of them\n\n", exp(sum / T1));
    printf("   A    d/dlogp * 3 of the token clip       GSPO                    CISPO\n");
    for (int sign = 1; sign >= -1; sign -= 2) {
        const float adv[T1] = {(float)sign, (float)sign, (float)sign};
        loss_clip(d[0], of_tokens, adv, w, T1, low, high);
        loss_clip(d[1], of_answer, adv, w, T1, low, high);
        loss_cispo(d[2], logp, of_tokens, adv, w, T1, low, high);
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
    const float both[2] = {1.0f, 1.0f};
    float dvalue[2];
    for (int clipped = 0; clipped < 2; clipped++) {
        double loss = loss_value(dvalue, value, value_old, target, both, 2, clipped ? 0.2f : 0.0f);
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
    float dlogp[T1], w[T1];
    token_weights(w, mask, 1, T1, NORM_TOKEN_MEAN, 0);
    double loss = loss_sft(dlogp, logp, w, T1);
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
    float dlogp[N * T1], w[N * T1];
    int mask[N * T1], best = best_of_n(group_reward, N);
    for (int i = 0; i < N * T1; i++) mask[i] = i / T1 == best;
    token_weights(w, mask, N, T1, NORM_TOKEN_MEAN, 0);
    double loss = loss_sft(dlogp, logp, w, N * T1);
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
    const float drifts[] = {80.0f, -80.0f}, other[1] = {-90.0f}, adv[] = {1.0f, -1.0f}, w[1] = {1.0f};
    printf("8. A policy that has run away: log-ratio +80 and -80, every number stays finite\n\n");
    printf("   log-ratio  loss                     value      d/dlogp\n");
    for (int i = 0; i < 2; i++) {
        float dlogp[1], drejected, logp[1] = {other[0] + drifts[i]};
        for (int a = 0; a < 2; a++) {
            double loss = loss_clip(dlogp, &drifts[i], adv + a, w, 1, 0.2f, 0.2f);
            printf("   %9.0f  clip, advantage %+.0f  %11.4g  %11.4g\n", drifts[i], adv[a], loss, dlogp[0]);
        }
        for (int k = 1; k <= 3; k++) {
            double loss = loss_kl(dlogp, logp, other, w, 1, k);
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

// A reward by its name. Not every reward says whether an answer is right, so a verifier stands beside it. `format` tells whether
// the answer is where the reward wants it, right or wrong.
typedef struct {
    const char* name;
    RewardFunction reward, verifier;
    int (*format)(const char* text, char* out, int cap);
} RewardKind;

static const RewardKind reward_kinds[] = {
    {"gsm8k", reward_gsm8k, reward_gsm8k, extract_hash_answer},
    {"boxed", reward_boxed, reward_boxed, extract_boxed},
    {"partial", reward_partial, reward_boxed, extract_boxed},        // these two can be hacked: lesson 5
    {"format", reward_format, reward_boxed, extract_boxed},
};

static const RewardKind* find_reward(const char* name) {
    for (size_t i = 0; i < sizeof reward_kinds / sizeof *reward_kinds; i++)
        if (!strcmp(name, reward_kinds[i].name)) return &reward_kinds[i];
    fail(2, "there is no reward '%s'; choose gsm8k, boxed, partial or format", name);
}

// A question ready for RL: its prompt, and its final answer: what stands behind GSM8K's last ####, or MATH's
// bare answer. The written solution is not used (D2 section 6), except as a demonstration in chapter 12.
typedef struct { Tokens prompt; char* truth; const char *question, *solution; } Question;
typedef struct { Question* list; int count, longest; Problems problems; } Questions;   // longest prompt in tokens

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
        q.list[q.count++] = (Question){prompt, copy_text(answer), p->question, p->answer};
        q.longest = max_int(q.longest, prompt.length);
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
static const char* const advantage_names[] = {"none", "centered", "rloo", "grpo", "gae", NULL};
enum { RATIO_NONE, RATIO_TOKEN, RATIO_SEQUENCE, RATIO_CISPO };
static const char* const ratio_names[] = {"none", "token", "sequence", "cispo", NULL};
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

// What is paid for: a reward function, a reward model's score, or the sum of both. The verifier of `kind` is there in any case,
// to tell how many answers are really right.
typedef struct {
    const RewardKind* kind;
    int paid;                       // 1 = the reward function of `kind` is (part of) the reward
    Model* model;                   // NULL: no reward model
} Reward;

typedef struct {
    Model *policy, *value, *reference;         // value: GAE only, else NULL; reference: frozen, NULL = no KL
    Optimizer *optimizer, *value_optimizer;
    Reward reward;
    const RlOptions* o;
    int advantage, ratio, norm, estimator, kl_in_reward, kl_mean;   // the options' words as numbers
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
                     .kl_mean = choose(o->kl_per, kl_per_names, "kl-per")};
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

// ---- one group: a question, its K rollouts, and what is known about each of their tokens

typedef struct {
    int correct, tool, format;      // rollouts that are right, that used the tool, that end in the format
    long tokens, sampled;           // all tokens after the prompt, and those that the model itself sampled
    double entropy;                 // sum over the sampled tokens, nats
} Grades;

typedef struct {
    const Question* question;
    Rollout* rollouts;                           // (K) ids (K,T) and mask (K,T), prompt included
    Grades grades;
    int zero_variance;                           // all rewards are equal: there is nothing to compare
    int trained;                                 // 0: neither advantage nor KL, so nothing to learn
    double loss, value_loss;                     // its shares of the minibatch's
    float *reward, *total;                       // (K) the answer's reward; the same minus the KL penalty
    int* mask;                                   // (K,T1), like all that follows: 1 = token t+1 was sampled
    float *logp_old, *logp_ref, *kl;             // of the policy that sampled, of the reference, estimated KL
    float *token_reward, *adv, *weight;          // what the loss takes besides the policy's log-probabilities:
    float *logp, *log_ratio, *dlogp, *dkl;       // of the policy in training
    float *value_old, *target, *value, *dvalue;  // of the value model
} Group;

// B groups of K rollouts with room for T tokens. Whoever makes them can look at them after rl_step().
static Group* groups_new(int B, int K, int T) {
    Group* group = allocate((size_t)B, sizeof(Group));
    size_t n = (size_t)K * (size_t)(T - 1);
    for (int i = 0; i < B; i++) {
        Group* g = &group[i];
        float** arrays[] = {&g->reward, &g->total, &g->logp_ref, &g->kl, &g->token_reward, &g->adv, &g->weight, &g->logp,
                            &g->log_ratio, &g->dlogp, &g->dkl, &g->value_old, &g->target, &g->value, &g->dvalue};
        float* next = allocate(n * (sizeof arrays / sizeof *arrays), sizeof(float));
        for (size_t j = 0; j < sizeof arrays / sizeof *arrays; j++) *arrays[j] = take(&next, n);
        g->rollouts = rollouts_new(K, T);
        g->logp_old = g->rollouts->logp;
        g->mask = allocate(n, sizeof(int));
    }
    return group;
}

static void groups_free(Group* group, int B) {
    for (int i = 0; i < B; i++) {
        rollouts_free(group[i].rollouts);
        free(group[i].mask), free(group[i].reward);      // `reward` begins the block of all float arrays
    }
    free(group);
}

// Step 3: the rewards (K) of the rollouts of one question, and counts.
static Grades grade_rollouts(float* reward, const Rollout* rollouts, int K, const char* truth, const RewardKind* kind) {
    char answer[MAX_ANSWER + 1];
    Grades g = {0};
    for (int k = 0; k < K; k++) {
        const Rollout* r = &rollouts[k];
        Text text = rollout_text(r);
        float correct = kind->verifier(text.data, truth);
        reward[k] = kind->reward == kind->verifier ? correct : kind->reward(text.data, truth);
        g.correct += correct == 1.0f;
        g.tool += used_tool(r);
        g.format += kind->format(text.data, answer, sizeof answer);
        g.tokens += r->length;
        g.sampled += count_masked(r->mask, r->T);
        for (int t = 0; t + 1 < r->T; t++) g.entropy += r->entropy[t];
        text_free(&text);
    }
    return g;
}

// Adds a reward model's scores to `paid` times the rewards. It reads question and answer, and says one number at the last token.
static void add_model_rewards(float* reward, int paid, Model* m, const Rollout* rollouts, int K) {
    int T = rollouts->T, T1 = T - 1;
    int* last = allocate((size_t)K * (size_t)T1, sizeof(int));
    float* score = allocate((size_t)K * (size_t)T1, sizeof(float));
    for (int k = 0; k < K; k++) last[k * T1 + rollouts[k].prompt + rollouts[k].length - 1] = 1;
    answers_forward(score, m, rollouts->ids, last, K, T);
    for (int k = 0; k < K; k++) {
        float own = score[k * T1 + rollouts[k].prompt + rollouts[k].length - 1];
        if (!isfinite(own)) {
            Text question = {0};
            decode_tokens(&question, rollouts[k].ids, rollouts[k].prompt, 0);
            fail(2, "the reward model's score is not a number for rollout %d of the question: %s", k + 1, question.data);
        }
        reward[k] = (paid ? reward[k] : 0.0f) + own;
    }
    free(last), free(score);
}

// DAPO's soft overlong punishment: 0 for an answer that leaves `window` tokens of the limit unused, falling to -1 for one that
// uses all of them.
static void add_overlong_penalties(float* reward, const Rollout* rollouts, int K, int limit, int window) {
    for (int k = 0; k < K; k++) {
        int over = rollouts[k].length - (limit - window);
        if (window > 0 && over > 0) reward[k] -= (float)over / (float)window;
    }
}

static int all_equal(const float* x, int n) {
    for (int i = 1; i < n; i++) if (x[i] != x[0]) return 0;
    return 1;
}

static int has_nonzero(const float* x, int n) {
    for (int i = 0; i < n; i++) if (x[i] != 0.0f) return 1;
    return 0;
}

// ---- what an update was like

// One record per update. metrics.csv has all of it, the screen the columns with a width: means over the updates since the last
// line. The same columns for every method, so that two logs can be compared.
typedef struct {
    double reward, accuracy, kl_ref, clip_fraction, length, entropy, grad_norm, seconds, held_out;
    double pass_rate, tool_rate, format_rate, zero_variance, resampled, ratio, approx_kl, loss, value_loss, lr,
        tokens_per_second;
} Metrics;

typedef struct { const char *name, *title; size_t at; int width, digits; } Column;   // title: on the screen

static const Column rl_columns[] = {
    {"reward", "reward", offsetof(Metrics, reward), 7, 3},                // mean over the rollouts
    {"accuracy", "accuracy", offsetof(Metrics, accuracy), 9, 3},            // share of them that the verifier accepts
    {"kl_ref", "kl_ref", offsetof(Metrics, kl_ref), 8, 3},                // KL(policy || reference) by k1, nats per answer
    {"clip_fraction", "clipped", offsetof(Metrics, clip_fraction), 8, 4},  // share of trained tokens that the clip holds
    {"length", "length", offsetof(Metrics, length), 7, 1},                // tokens per answer, the tool's too
    {"entropy", "entropy", offsetof(Metrics, entropy), 8, 3},              // of the policy at the sampled tokens, nats
    {"grad_norm", "|grad|", offsetof(Metrics, grad_norm), 7, 3},          // before clipping, mean over the gradient steps
    {"seconds", "seconds", offsetof(Metrics, seconds), 8, 2},              // of the update, without evaluation
    {"held_out", "held-out", offsetof(Metrics, held_out), 9, 3},            // pass@1 on held-out questions; empty = not looked at
    {"pass_rate", NULL, offsetof(Metrics, pass_rate), 0, 0},          // questions with at least one right rollout
    {"tool_rate", NULL, offsetof(Metrics, tool_rate), 0, 0},          // rollouts in which the tool answered
    {"format_rate", NULL, offsetof(Metrics, format_rate), 0, 0},      // rollouts whose answer is where the reward looks
    {"zero_variance", NULL, offsetof(Metrics, zero_variance), 0, 0},  // groups whose rewards are all equal
    {"resampled", NULL, offsetof(Metrics, resampled), 0, 0},          // groups drawn again (dynamic sampling)
    {"ratio", NULL, offsetof(Metrics, ratio), 0, 0},                  // pi/pi_old, mean over trained tokens, last pass
    {"approx_kl", NULL, offsetof(Metrics, approx_kl), 0, 0},          // KL(pi_old || pi) by k3, nats per trained token
    {"loss", NULL, offsetof(Metrics, loss), 0, 0},
    {"value_loss", NULL, offsetof(Metrics, value_loss), 0, 0},
    {"lr", NULL, offsetof(Metrics, lr), 0, 0},
    {"tokens_per_second", NULL, offsetof(Metrics, tokens_per_second), 0, 0},   // of the rollouts; not of those drawn again
};
enum { RL_COLUMNS = sizeof rl_columns / sizeof *rl_columns };

static Metrics measure(const Learner* l, const Group* group, int B, int K, int n, int steps) {
    double answers = (double)B * K, tokens = 0.0, sampled = 0.0, trained = 0.0;
    Metrics s = {.held_out = NAN};
    for (int i = 0; i < B; i++) {
        const Group* g = &group[i];
        s.accuracy += g->grades.correct / answers;
        s.tool_rate += g->grades.tool / answers;
        s.format_rate += g->grades.format / answers;
        s.length += (double)g->grades.tokens / answers;
        s.pass_rate += (double)(g->grades.correct > 0) / B;
        s.zero_variance += g->zero_variance;
        s.entropy += g->grades.entropy;
        tokens += (double)g->grades.tokens;
        sampled += (double)g->grades.sampled;
        s.loss += g->loss / steps;
        s.value_loss += g->value_loss / steps;
        for (int k = 0; k < K; k++) s.reward += g->reward[k] / answers;
        for (int j = 0; j < n; j++) {
            if (!g->mask[j]) continue;
            if (l->reference) s.kl_ref += ((double)g->logp_old[j] - g->logp_ref[j]) / answers;
            if (!g->trained) continue;
            double slope, ratio = bounded_exp(&slope, g->log_ratio[j]), low = l->o->clip_low, high = l->o->clip_high;
            int outside = ratio < 1.0 - low || ratio > 1.0 + high;
            trained++;
            s.ratio += ratio;
            s.clip_fraction += l->ratio == RATIO_CISPO ? outside : l->ratio && is_clipped(ratio, g->adv[j], low, high);
            s.approx_kl += kl_estimate(&slope, (double)g->logp_old[j] - g->logp[j], 3);
        }
    }
    s.entropy /= fmax(sampled, 1.0);
    s.ratio = trained > 0.0 ? s.ratio / trained : 1.0;
    s.clip_fraction /= fmax(trained, 1.0);
    s.approx_kl /= fmax(trained, 1.0);
    s.tokens_per_second = tokens;                          // rl_step divides by the seconds
    return s;
}

// ---- one update, top to bottom

// On the questions q->list[chosen[0 .. B-1]], with the arrays of `group` (B). decay: the schedule's factor on the learning rates.
static Metrics rl_step(Learner* l, Group* group, const Questions* q, const int* chosen, long step, double decay) {
    const RlOptions* o = l->o;
    int B = o->examples_per_step, K = o->num_samples, T = group->rollouts->T, T1 = T - 1, n = K * T1;
    int minibatch = o->minibatch ? min_int(o->minibatch, B) : B, limit = o->sample.max_new_tokens, redrawn = 0;
    int per_epoch = (B + minibatch - 1) / minibatch, steps = o->epochs_per_batch * per_epoch, turns = turns_of(l->policy);
    int kl_in_loss = o->beta > 0.0f && !l->kl_in_reward;
    float beta_in_reward = l->kl_in_reward ? o->beta : 0.0f, low = o->clip_low, high = o->clip_high;
    double lr = (double)o->lr * o->init_lr_frac * decay, grad_norm = 0.0, started = seconds_now();

    // 1 to 3. Take questions, sample K rollouts of each, reward them. Dynamic sampling (DAPO) replaces a question whose
    //         rewards are all equal by another one, up to o->resample times.
    for (int round = 0; round <= o->resample; round++) {
        #pragma omp parallel for schedule(dynamic) reduction(+ : redrawn)
        for (int i = 0; i < B; i++) {
            Group* g = &group[i];
            uint64_t stream = (uint64_t)step * (uint64_t)B + (uint64_t)i;
            Rng rng = random_stream(o->seed + 3, stream, (uint64_t)round);
            if (round && !g->zero_variance) continue;
            redrawn += round > 0;
            g->question = &q->list[round ? random_int(&rng, q->count) : chosen[i]];
            sample_rollouts(g->rollouts, worker(l->policy), &g->question->prompt, 1, K, o->sample, tool_calculator,
                            o->seed + 1 + ((uint64_t)round << 32), stream);
            shift_mask(g->mask, g->rollouts->mask, K, T);
            g->grades = grade_rollouts(g->reward, g->rollouts, K, g->question->truth, l->reward.kind);
            if (l->reward.model) add_model_rewards(g->reward, l->reward.paid, worker(l->reward.model), g->rollouts, K);
            g->zero_variance = all_equal(g->reward, K);
        }
    }

    // 4. The reward of each token, with the KL penalty; the advantage of each token; what it counts in the loss.
    #pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < B; i++) {
        Group* g = &group[i];
        const int *ids = g->rollouts->ids, *mask = g->mask;
        add_overlong_penalties(g->reward, g->rollouts, K, limit, o->overlong);
        if (l->reference) {
            answers_forward(g->logp_ref, worker(l->reference), ids, mask, K, T);
            if (l->estimator == 1) kl_k1(g->kl, g->logp_old, g->logp_ref, n);
            if (l->estimator == 2) kl_k2(g->kl, g->logp_old, g->logp_ref, n);
            if (l->estimator == 3) kl_k3(g->kl, g->logp_old, g->logp_ref, n);
        }
        token_rewards(g->token_reward, g->reward, l->reference ? g->kl : NULL, mask, K, T1, beta_in_reward, l->kl_mean);
        if (l->value) {
            answers_forward(g->value_old, worker(l->value), ids, mask, K, T);
            group_gae(g->adv, g->token_reward, g->value_old, mask, K, T1, o->gamma, o->lambda);
            for (int j = 0; j < n; j++) g->target[j] = g->adv[j] + g->value_old[j];
        } else {
            sequence_logprobs(g->total, g->token_reward, mask, K, T1);      // here: the sum of an answer's token rewards
            compute_advantages(g->total, g->total, K, l->advantage);
            broadcast_advantages(g->adv, g->total, mask, K, T1);
        }
        int filtered = o->resample && g->zero_variance, from = i / minibatch * minibatch;
        token_weights(g->weight, mask, K, T1, l->norm, limit);
        for (int j = 0; j < n; j++) g->weight[j] /= (float)(min_int(from + minibatch, B) - from);
        g->trained = !filtered && (kl_in_loss || has_nonzero(g->adv, n));
        g->loss = 0.0;
        g->value_loss = 0.0;
    }

    // 5 and 6. Per minibatch: log-probabilities, loss, KL, backward of each question; then clip and step.
    for (int pass = 0; pass < steps; pass++) {
        int from = pass % per_epoch * minibatch, to = min_int(from + minibatch, B);
        #pragma omp parallel for schedule(dynamic)
        for (int turn = 0; turn < turns; turn++) {
            Model *m = learning_worker(l->policy, turn), *v = l->value ? learning_worker(l->value, turn) : NULL;
            for (int i = from + turn; i < to; i += turns) {
                Group* g = &group[i];
                const int *ids = g->rollouts->ids, *mask = g->mask;
                if (g->trained) {
                    answers_forward(g->logp, m, ids, mask, K, T);
                    if (l->ratio == RATIO_SEQUENCE) sequence_log_ratio(g->log_ratio, g->logp, g->logp_old, mask, K, T1);
                    else token_log_ratio(g->log_ratio, g->logp, g->logp_old, mask, K, T1);
                    if (l->ratio == RATIO_NONE) g->loss += loss_policy_gradient(g->dlogp, g->logp, g->adv, g->weight, n);
                    else if (l->ratio == RATIO_CISPO)
                        g->loss += loss_cispo(g->dlogp, g->logp, g->log_ratio, g->adv, g->weight, n, low, high);
                    else g->loss += loss_clip(g->dlogp, g->log_ratio, g->adv, g->weight, n, low, high);
                    if (kl_in_loss) {
                        g->loss += o->beta * loss_kl(g->dkl, g->logp, g->logp_ref, g->weight, n, l->estimator);
                        for (int j = 0; j < n; j++) g->dlogp[j] += o->beta * g->dkl[j];
                    }
                    answers_backward(m, g->dlogp, ids, mask, K, T);
                }
                if (v) {
                    answers_forward(g->value, v, ids, mask, K, T);
                    g->value_loss += loss_value(g->dvalue, g->value, g->value_old, g->target, g->weight, n, o->value_clip);
                    answers_backward(v, g->dvalue, ids, mask, K, T);
                }
            }
        }
        add_gradients(l->policy, turns);
        grad_norm += clip_and_step(l->policy, l->optimizer, lr, o->grad_clip, o->adam);
        if (!l->value) continue;
        add_gradients(l->value, turns);
        clip_and_step(l->value, l->value_optimizer, o->value_lr * decay, o->grad_clip, o->adam);
    }

    // 7. What it was like. The next update overwrites the rollouts: they came from the old policy.
    Metrics s = measure(l, group, B, K, n, steps);
    s.resampled = redrawn;
    s.grad_norm = grad_norm / steps;
    s.lr = lr;
    s.seconds = seconds_now() - started;
    s.tokens_per_second /= s.seconds;
    return s;
}

// ---- one update under the microscope: what rl_step() left in the arrays of a group

// A text in one line; of one that is longer than `width` characters, the end.
static void print_ending(const char* text, int width) {
    const char *s = text + strlen(text), *cut = s;
    for (int count = 0; s > text && count < width;) {
        int begins = (*--s & 0xC0) != 0x80; // 10xxxxxx goes on with a character
        count += begins;
        if (begins && count <= width - 2) cut = s;
    }
    if (s > text) {
        printf("..");
        s = cut;
    }
    for (; *s; s++) putchar(*s == '\n' ? ' ' : *s);
}

// One line per rollout; `chosen` gets a mark. sum: log pi(y|x) when it was sampled; other: the same under a second model or after
// the update, both (K,T1), with the names of the two columns and of their difference. Without a reward, adv is left out.
static void print_rollouts(const Group* g, int K, int rewarded, const float* other, const char* const* names, int chosen) {
    int T1 = g->rollouts->T - 1, room = 80 - 29 - (rewarded ? 15 : 0) - (other ? 16 : 0);
    float sum[2];
    printf("   k%s tokens sampled %7s", rewarded ? " reward     adv" : "", other ? names[0] : "log pi");
    if (other) printf(" %7s %7s", names[1], names[2]);
    printf("  answer ends\n");
    for (int k = 0; k < K; k++) {
        const Rollout* r = &g->rollouts[k];
        const int* mask = g->mask + k * T1;
        int first = 0;
        while (first < T1 - 1 && !mask[first]) first++;
        sequence_logprobs(&sum[0], g->logp_old + k * T1, mask, 1, T1);
        printf("%c%3d", k == chosen ? '>' : ' ', k);
        if (rewarded) printf(" %6.3g %7.4f", (double)g->reward[k], (double)g->adv[k * T1 + first]);
        printf(" %6d %7d", r->length, count_masked(r->mask, r->T));
        print_nats(sum[0], 1);
        if (other) {
            sequence_logprobs(&sum[1], other + k * T1, mask, 1, T1);
            print_nats(sum[1], 1);
            print_change((double)sum[1] - sum[0], 1);
        }
        Text raw = rollout_text(r), text = {0};
        append_readable(&text, raw.data);
        printf("  ");
        print_ending(text.data, room);
        printf("\n");
        text_free(&raw), text_free(&text);
    }
}

// 1 when the first byte of the answer is a letter, digit or sign of ASCII: half of all bytes.
static float reward_ascii(const char* response, const char* truth) {
    (void)truth;
    return *response && (unsigned char)*response < 128 ? 1.0f : 0.0f;
}

// The loop's own rl_step() on one question, and what it left behind. The model is untrained and can do no sums, so the reward is a
// simpler one.
static void lesson_10(void) {
    enum { K = 4, NEW = 3 };
    static const char* const names[] = {"before", "after", "change"};
    RewardKind ascii = {"ascii", reward_ascii, reward_ascii, extract_boxed};
    Config small = train_defaults().config;
    small.layers = 1;
    Model m = model_new(small);
    model_init(&m, 10);
    Optimizer optimizer = optimizer_new(&small);
    RlOptions o = rl_defaults();
    o.num_samples = K;
    o.examples_per_step = 1;
    o.sample = (SampleOptions){.max_new_tokens = NEW, .temperature = 1.0f, .top_k = 0, .top_p = 1.0f};
    o.seed = 10;
    Question question = {.question = "Say something.", .truth = ""};
    render_prompt(&question.prompt, question.question);
    Questions q = {.list = &question, .count = 1, .longest = question.prompt.length};
    Group* g = groups_new(1, K, q.longest + NEW + 1);
    Learner l = learner_new(&m, &optimizer, (Reward){.kind = &ascii, .paid = 1}, &o);
    int first = 0, T1 = g->rollouts->T - 1, start = question.prompt.length - 1;
    float* after = allocate((size_t)K * (size_t)T1, sizeof(float));
    Metrics s = rl_step(&l, g, &q, &first, 0, 1.0);
    score_rollouts(after, &m, g->rollouts, K);

    printf("LESSON 10. One update (D1)\n\n");
    printf("Question  how do sampled answers become a step of the weights?\n");
    printf("Formula   loss = - sum over sampled tokens of adv x log pi / (number of them)\n");
    printf("Symbols   adv = reward - mean reward of the question; log pi in nats;\n");
    printf("          dlogp = d loss / d log pi of a token\n\n");
    printf("1 to 3. %d rollouts of at most %d tokens. Reward: here 1 when the first byte is\nbelow 128 "
           "(the model is untrained). 4. adv = reward - mean.\n\n", K, NEW);
    print_rollouts(g, K, 1, after, names, -1);
    double largest = 0.0;
    for (int i = 0; i < K * T1; i++) largest = fmax(largest, fabs((double)g->logp[i] - g->logp_old[i]));
    printf("\n5. The same tokens through the training pass: largest difference of a log-\n   probability "
           "from the one recorded while sampling: %g. On-policy, ratio 1.\n", largest);
    printf("\n   loss = %.6f. dlogp = - adv / %d, the sampled tokens of the group:\n\n", g->loss,
           count_masked(g->mask, K * T1));
    printf("   k   token  dlogp\n");
    for (int k = 0; k < K; k++) {
        printf("%4d ", k);
        for (int t = start; t < start + NEW; t++)
            if (g->mask[k * T1 + t]) printf("  %4d %+7.4f", g->rollouts[k].ids[t + 1], (double)g->dlogp[k * T1 + t]);
        printf("\n");
    }
    printf("\n6. Backward: gradient norm %.4f, clipped at %g. AdamW, learning rate %.2e.\n", s.grad_norm, (double)o.grad_clip,
           s.lr);
    printf("7. The rollouts are thrown away; \"after\" above is what the step did to them.\n\n");
    printf("Take away: here each change has the sign of its advantage. Answers that begin\n"
           "alike pull each other along, so that need not be so for every one of them.\n");
    groups_free(g, 1), tokens_free(&question.prompt), optimizer_free(&optimizer), model_free(&m), free(after);
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

// KL(model || reference) by k1, summed over K answers to each of B questions. (k3's exponential would let one answer decide,
// far from the reference: chapter 8.)
static double sum_of_kl(Model* reference, const Rollout* rollouts, int B, int K) {
    int T1 = rollouts->T - 1, n = K * T1;
    double* kl = allocate((size_t)B, sizeof(double)), sum = 0.0;
    #pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < B; i++) {
        const Rollout* r = rollouts + (size_t)i * K;
        float* logp_ref = allocate((size_t)n, sizeof(float));
        score_rollouts(logp_ref, worker(reference), r, K);
        for (int j = 0; j < n; j++) kl[i] += (double)r->logp[j] - logp_ref[j];      // both are 0 where not sampled
        free(logp_ref);
    }
    for (int i = 0; i < B; i++) sum += kl[i];
    free(kl);
    return sum;
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
        if (reference) e.kl += sum_of_kl(reference, rollouts, B, samples);
        for (int i = 0; i < B; i++) {
            Grades g = grade_rollouts(reward, rollouts + i * samples, samples, q->list[from + i].truth, kind);
            evaluation_add(&e, samples, g.correct);
            e.tool_rate += g.tool;
            e.format_rate += g.format;
            e.length += (double)g.tokens;
            e.entropy += g.entropy;
            sampled += g.sampled;
        }
        rollouts_free(rollouts);
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
int majority_vote(const char* const* answers, int n) {
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

// ---- where pairs come from: rollouts and an annotator
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

typedef struct { const char *name, *what; int demonstration; float reward, length; } Annotator;

static const Annotator annotators[] = {
    {"verifier", "right answers beat wrong ones", DEMO_NONE, 1.0f, 0.0f},
    {"demos", "the demonstration beats wrong answers", DEMO_WINS, 1.0f, 0.0f},
    {"mixed", "verifier; the demonstration competes", DEMO_COMPETES, 1.0f, 0.0f},
    {"longer", "the longer answer wins, right or wrong", DEMO_NONE, 0.0f, 1.0f},
    {"shorter", "the shorter answer wins, right or wrong", DEMO_NONE, 0.0f, -1.0f},
    {"wordy", "right beats wrong, but 20 tokens more make up for it", DEMO_NONE, 1.0f, 0.05f},
};

static const Annotator* find_annotator(const char* name) {
    enum { ANNOTATORS = sizeof annotators / sizeof *annotators };
    const char* names[ANNOTATORS + 1] = {NULL};
    for (int i = 0; i < ANNOTATORS; i++) names[i] = annotators[i].name;
    return &annotators[choose(name, names, "annotator")];
}

// A rollout as the answer of a data file; to be freed. NULL when it cannot be one: it was cut off, is empty
// or no UTF-8, or would be read back as other tokens or with another mask (a call that the tool did not
// answer, an output that the model wrote itself). Then training would see something that was never sampled.
static char* rollout_answer(const Rollout* r, const Question* q) {
    Text text = {0};
    Tokens again = {0};
    int end = r->prompt + r->length;
    text_append(&text, "", 0);
    for (int t = r->prompt; t < end; t++) {
        char byte = (char)r->ids[t];
        if (r->ids[t] < 256) text_append(&text, &byte, 1);
        else if (r->ids[t] == PYTHON_START) text_append(&text, "<<", 2);
        else if (r->ids[t] == OUTPUT_START) text_append(&text, "=", 1);
        else if (r->ids[t] == OUTPUT_END) text_append(&text, ">>", 2);
    }
    render_conversation(&again, q->question, text.data);
    int same = r->finished && text.length && again.length == end &&
               !memcmp(again.ids, r->ids, (size_t)end * sizeof(int)) &&
               !memcmp(again.mask, r->mask, (size_t)end * sizeof(int));
    for (const char *p = text.data, *stop = p + text.length; same && p < stop; p += utf8_length(p, stop))
        if (!utf8_length(p, stop)) same = 0;
    tokens_free(&again);
    if (!same) text_free(&text);
    return text.data;
}

// The answer that stands in the data file, as if it had been sampled. Lives until rollouts_free().
static Rollout* demonstration(const Question* q) {
    Tokens t = {0};
    render_conversation(&t, q->question, q->solution);
    Rollout* r = rollouts_new(1, t.length + 1);
    rollout_begin(r, &q->prompt);
    r->length = t.length - r->prompt;
    r->finished = 1;
    memcpy(r->ids, t.ids, (size_t)t.length * sizeof(int));
    memcpy(r->mask, t.mask, (size_t)t.length * sizeof(int));
    tokens_free(&t);
    return r;
}

// How pairs are made from the rollouts of a question.
typedef struct {
    const Annotator* annotator;
    const RewardKind* kind;          // the verifier
    int per_question;                // at most so many pairs of one question
    float noise;                     // probability that a judgement is turned around
    uint64_t seed;                   // of the choice of pairs and of the noise
} PairRules;

// Adds the pairs of question number `index`, which has the rollouts (K): at most per_question of all (winner, loser), chosen at
// random. Of answers with the same text only the last one counts, so that a demonstration stays when it was sampled too.
static void annotate(Pairs* p, const Question* q, int index, const Rollout* rollouts, int K, const PairRules* rules) {
    const Annotator* a = rules->annotator;
    int n = K + (a->demonstration != DEMO_NONE), count = 0;
    Rollout *all = allocate((size_t)K + 1, sizeof(Rollout)), *demo = demonstration(q);
    char** answer = allocate((size_t)K + 1, sizeof(char*));
    float* score = allocate((size_t)K + 1, sizeof(float));
    int *pair = allocate((size_t)n * n, sizeof(int)), *order = allocate((size_t)n * n, sizeof(int));
    Rng rng = random_stream(rules->seed, (uint64_t)index, 0);
    memcpy(all, rollouts, (size_t)K * sizeof(Rollout));
    all[K] = *demo;
    grade_rollouts(score, all, K + 1, q->truth, rules->kind);
    for (int k = 0; k < n; k++) {
        score[k] = a->reward * score[k] + a->length * (float)all[k].length;
        answer[k] = rollout_answer(&all[k], q);
        for (int j = 0; j < k && answer[k]; j++) {
            if (!answer[j] || strcmp(answer[j], answer[k])) continue;
            free(answer[j]);
            answer[j] = NULL;
        }
    }
    for (int w = a->demonstration == DEMO_WINS ? K : 0; w < n; w++)
        for (int l = 0; l < n; l++)
            if (answer[w] && answer[l] && score[w] > score[l]) pair[count++] = w * n + l;
    shuffle(order, count, &rng);
    for (int i = 0; i < count && i < rules->per_question; i++) {
        int w = pair[order[i]] / n, l = pair[order[i]] % n, turned = random_uniform(&rng) < rules->noise;
        pairs_add(p, q->question, answer[turned ? l : w], answer[turned ? w : l]);
    }
    for (int k = 0; k < n; k++) free(answer[k]);
    rollouts_free(demo);
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

enum { PAIR_BRADLEY_TERRY, PAIR_OUTCOME, PAIR_DPO };

typedef struct {
    const char *name, *what;
    int scalar;                      // 1 = by the scalar head, 0 = by log-probabilities
    int kind;
} PairLoss;

static const PairLoss pair_losses[] = {
    {"bradley-terry", "the chosen answer beats the rejected one", 1, PAIR_BRADLEY_TERRY},
    {"outcome", "the chosen answer is right, the other one wrong", 1, PAIR_OUTCOME},
    {"dpo", "as bradley-terry, on the policy's own log-ratios", 0, PAIR_DPO},
};

// What a pair said on its way through the model.
typedef struct { float value[2]; double loss, margin; } PairResult;

// Loss, margin and d(loss)/d(value) (2) of one pair from its two values.
static void pair_loss(float* dvalue, PairResult* r, const Pair* pair, int kind, float beta) {
    const float *v = r->value, *ref = pair->reference;
    if (kind == PAIR_BRADLEY_TERRY) r->loss = loss_reward_model(&dvalue[CHOSEN], &dvalue[REJECTED], v[CHOSEN], v[REJECTED]);
    if (kind == PAIR_DPO)
        r->loss = loss_dpo(&dvalue[CHOSEN], &dvalue[REJECTED], v[CHOSEN], v[REJECTED], ref[CHOSEN], ref[REJECTED], beta);
    if (kind == PAIR_OUTCOME) {      // binary cross-entropy of right (1) and wrong (0), mean of the two (Cobbe et al. 2021)
        double right, wrong;
        r->loss = 0.5 * (bradley_terry(&right, v[CHOSEN]) + bradley_terry(&wrong, -v[REJECTED]));
        dvalue[CHOSEN] = (float)(0.5 * right);
        dvalue[REJECTED] = (float)(-0.5 * wrong);
    }
    r->margin = (double)beta * (((double)v[CHOSEN] - ref[CHOSEN]) - ((double)v[REJECTED] - ref[REJECTED]));
}

// `count` pairs through the model: result (count) and, with learn, the gradient of the mean loss, added to grads. beta = 1 for a
// scalar model.
static void pairs_forward(PairResult* result, Model* m, Pair* const* list, int count, const PairLoss* loss, float beta,
                          int learn) {
    const Tokens** row = allocate(2 * (size_t)count, sizeof(Tokens*));
    for (int i = 0; i < 2 * count; i++) row[i] = &list[i / 2]->tokens[i % 2];
    Padded p = pad_conversations(row, 2 * count);
    int T = p.T, T1 = T - 1, turns = turns_of(m);
    for (int i = 0; i < 2 * count && loss->scalar; i++) {      // a score is asked for at the last token alone
        memset(p.mask + (size_t)i * T1, 0, (size_t)T1 * sizeof(int));
        p.mask[(size_t)i * T1 + row[i]->length - 1] = 1;
    }
    #pragma omp parallel for schedule(dynamic)
    for (int turn = 0; turn < turns; turn++) {
        Model* one = learn ? learning_worker(m, turn) : worker(m);
        float *out = allocate(2 * (size_t)T1, sizeof(float)), *d = allocate(2 * (size_t)T1, sizeof(float)), dvalue[2];
        for (int i = turn; i < count; i += turns) {
            const int *ids = p.ids + 2 * (size_t)i * T, *mask = p.mask + 2 * (size_t)i * T1;
            answers_forward(out, one, ids, mask, 2, T);
            sequence_logprobs(result[i].value, out, mask, 2, T1);
            pair_loss(dvalue, &result[i], list[i], loss->kind, beta);
            if (!learn) continue;
            for (int side = CHOSEN; side <= REJECTED; side++) dvalue[side] /= (float)count;
            broadcast_advantages(d, dvalue, mask, 2, T1);
            answers_backward(one, d, ids, mask, 2, T);
        }
        free(out), free(d);
    }
    if (learn) add_gradients(m, turns);
    free(row), padded_free(&p);
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
    pairs_forward(result, m, list, count, loss, beta, 1);
    for (int i = 0; i < count; i++) {
        s.loss += result[i].loss / count, s.margin += result[i].margin / count;
        s.accuracy += ranked_right(result[i].margin) / count;
        s.chosen += result[i].value[CHOSEN] / (double)count;
        s.rejected += result[i].value[REJECTED] / (double)count;
    }
    s.grad_norm = clip_and_step(m, optimizer, lr, grad_clip, adam);
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
    int n = p->count, by_answer = loss->kind == PAIR_OUTCOME;
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
 * ======================================================================================================== */
#include <complex.h>
#undef I  // complex.h claims this name; _Complex_I does the same

/* ---- A.1 Same answer? First idea: normalize ----
 *
 * We read \dfrac{1}{2}, \frac12 and \frac 1 2 as one thing. The table drops what is only typography and gives
 * each symbol one spelling; everything else is copied. Special forms in the result:
 *     "cm"             words from \text{...} and its relatives, in quotes; also "degree", "%" and "$"
 *     1`000            a thousands separator (the comma of a list stays a comma)
 *     [[a,b],[c,d]]    a matrix, so that rows and columns need no code of their own
 *     {a,b}            a set; LaTeX's grouping braces look the same, but have no comma at their top level
 * A space survives only between letters or digits: 3 1/2 must not become 31/2.
 */
static const struct { const char* from; const char* to; } SPELLINGS[] = {
    {"\\left", ""}, {"\\right", ""}, {"\\big", ""}, {"\\Big", ""}, {"\\bigl", ""}, {"\\bigr", ""},
    {"\\Bigl", ""}, {"\\Bigr", ""}, {"\\displaystyle", ""}, {"\\limits", ""}, {"\\mathbf", ""},
    {"\\boldsymbol", ""}, {"\\!", ""}, {"\\,", ""}, {"\\;", ""}, {"\\:", ""}, {"\\ ", " "}, {"\\quad", " "},
    {"\\qquad", " "}, {"\\(", ""}, {"\\)", ""}, {"\\[", ""}, {"\\]", ""}, {"{,}", ""}, {",\\!", ""},
    {",\\! ", ""}, {"\\dfrac", "\\frac"}, {"\\tfrac", "\\frac"}, {"\\cfrac", "\\frac"}, {"\\cdot", "*"},
    {"\\times", "*"}, {"\\div", "/"}, {"**", "^"}, {"\\{", "{"}, {"\\}", "}"}, {"\\lbrace", "{"},
    {"\\rbrace", "}"}, {"\\langle", "("}, {"\\rangle", ")"}, {"\\lvert", "|"}, {"\\rvert", "|"},
    {"\\vert", "|"}, {"\\lfloor", "floor("}, {"\\rfloor", ")"}, {"\\lceil", "ceil("}, {"\\rceil", ")"},
    {"\\emptyset", "{}"}, {"\\varnothing", "{}"}, {"\\leq", "<="}, {"\\le", "<="}, {"\\geq", ">="},
    {"\\ge", ">="}, {"\\lt", "<"}, {"\\gt", ">"}, {"\\ne", "!="}, {"\\neq", "!="}, {"\\in", "="},
    {"\\ldots", "..."}, {"\\dots", "..."}, {"\\%", "\"%\""}, {"%", "\"%\""}, {"\\$", "\"$\""}, {"$", ""},
    {"^\\circ", "\"degree\""}, {"^{\\circ}", "\"degree\""}, {"\\degree", "\"degree\""},
    {"\\mathbb{R}", "(-\\infty,\\infty)"}, {"\\begin{pmatrix}", "[["}, {"\\end{pmatrix}", "]]"},
    {"\\begin{bmatrix}", "[["}, {"\\end{bmatrix}", "]]"}, {"\\beginpmatrix", "[["}, {"\\endpmatrix", "]]"},
    {"\\\\", "],["}, {"&", ","}, {"\\pm*", "\\pm"}, {" and ", ","}, {" or ", ","}, {")U(", ")\\cup("},
    {")U[", ")\\cup["}, {"]U(", "]\\cup("}, {"]U[", "]\\cup["}, {") U (", ")\\cup("}, {") U [", ")\\cup["},
    {"] U (", "]\\cup("}, {"] U [", "]\\cup["},
    // Unicode, in bytes of UTF-8: minus, en dash, times, dots, division, pi, theta, infinity, degree, root,
    // <= >= !=
    {"\xe2\x88\x92", "-"}, {"\xe2\x80\x93", "-"}, {"\xc3\x97", "*"}, {"\xc2\xb7", "*"}, {"\xe2\x8b\x85", "*"},
    {"\xc3\xb7", "/"}, {"\xcf\x80", "\\pi "}, {"\xce\xb8", "\\theta "}, {"\xe2\x88\x9e", "\\infty "},
    {"\xc2\xb0", "\"degree\""}, {"\xe2\x88\x9a", "sqrt "}, {"\xe2\x89\xa4", "<="}, {"\xe2\x89\xa5", ">="},
    {"\xe2\x89\xa0", "!="},
    // union, element of, plus-minus, empty set, R, the fractions 1/2 1/4 3/4, three widths of space, euro,
    // pound
    {"\xe2\x88\xaa", "\\cup "}, {"\xe2\x88\x88", "="}, {"\xc2\xb1", "\\pm "}, {"\xe2\x88\x85", "{}"},
    {"\xe2\x84\x9d", "(-\\infty,\\infty)"}, {"\xc2\xbd", "\\frac12"}, {"\xc2\xbc", "\\frac14"},
    {"\xc2\xbe", "\\frac34"}, {"\xc2\xa0", " "}, {"\xe2\x80\x89", " "}, {"\xe2\x80\xaf", " "},
    {"\xe2\x82\xac", "\"euro\""}, {"\xc2\xa3", "\"pound\""},
};
static const char* const SUPERSCRIPTS[] = {  // raised digits 0 to 9, and the raised minus
    "\xe2\x81\xb0", "\xc2\xb9", "\xc2\xb2", "\xc2\xb3", "\xe2\x81\xb4", "\xe2\x81\xb5", "\xe2\x81\xb6",
    "\xe2\x81\xb7", "\xe2\x81\xb8", "\xe2\x81\xb9", "\xe2\x81\xbb"};
static const char* const TEXT_COMMANDS[] = {"\\operatorname", "\\mbox", "\\text", "\\textbf", "\\textit",
                                            "\\textrm", "\\mathrm", "\\mathsf", "\\hbox"};

typedef struct {
    char text[MAX_NORMALIZED];
    int length, full;  // bytes in text; did it overflow?
    int space, depth;  // is a space waiting; how many brackets are open
} Normalized;

static int bracket_step(char c) {
    return (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
}

static int is_word_character(char c) { return is_letter(c) || is_digit(c); }

static void emit(Normalized* out, const char* s, int n) {
    for (int i = 0; i < n; i++) {
        if (is_space(s[i])) { out->space = 1; continue; }
        if (out->length + 2 >= MAX_NORMALIZED) { out->full = 1; return; }
        char before = out->length ? out->text[out->length - 1] : 0;
        int keep = out->space && is_word_character(before) && is_word_character(s[i]);
        if (keep) out->text[out->length++] = ' ';
        out->text[out->length++] = s[i];
        out->space = 0;
        out->depth += bracket_step(s[i]);
    }
}

// Rewrites a \text{...} at p: words go into quotes, "and" and "or" become the comma of a list. Returns how
// many bytes were read, 0 = this is something else.
static int normalize_text_command(Normalized* out, const char* p) {
    for (size_t i = 0; i < sizeof TEXT_COMMANDS / sizeof *TEXT_COMMANDS; i++) {
        int n = (int)strlen(TEXT_COMMANDS[i]), words = 0;
        if (strncmp(p, TEXT_COMMANDS[i], (size_t)n)) continue;
        const char* start = p + n;
        while (*start == ' ') start++;
        if (*start != '{' && i == 1 && is_letter(p[n])) return n;  // \mboxinches has lost its braces
        const char* close = *start == '{' ? find_closing_brace(start, start + strlen(start)) : NULL;
        if (!close) continue;
        do start++; while (start < close && is_space(*start));
        int length = (int)(close - start);
        for (int k = 0; k < length; k++) words |= is_letter(start[k]);
        if (!strncmp(start, "and}", 4) || !strncmp(start, "or}", 3) || !strncmp(start, "and }", 5) ||
            !strncmp(start, "or }", 4)) emit(out, ",", 1);
        else if (!words || i == 0) emit(out, start, length);
        else {
            emit(out, "\"", 1);
            for (int k = 0; k < length; k++)
                if (start[k] != '"' && start[k] != '$') emit(out, start + k, 1);
            emit(out, "\"", 1);
        }
        return (int)(close + 1 - p);
    }
    return 0;
}

// Rewrites raised digits at p: the characters 1 and 0, raised, become ^10. Returns how many bytes were read.
static int normalize_superscript(Normalized* out, const char* p) {
    int n = 0;
    for (int d = 0; d < 11; d++) {
        int length = (int)strlen(SUPERSCRIPTS[d]);
        if (strncmp(p + n, SUPERSCRIPTS[d], (size_t)length)) continue;
        if (n == 0) emit(out, "^", 1);
        emit(out, &"0123456789-"[d], 1);
        n += length;
        d = -1;  // look for the next one
    }
    return n;
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

// Rewrites answer into its one spelling. 1 = done, 0 = too long.
static int normalize(Normalized* out, const char* answer) {
    out->length = out->full = out->space = out->depth = 0;
    for (const char* p = answer; *p && !out->full;) {
        const char* to = "";
        int n = 0;
        if ((unsigned char)*p >= 0x80) n = normalize_superscript(out, p);
        if (!n && *p == '\\') n = normalize_text_command(out, p);
        if (!n && !is_word_character(*p) && (n = match_spelling(&to, p)) > 0) emit(out, to, (int)strlen(to));
        if (!n && *p == '\\' && is_letter(p[1])) {  // \frac, \sqrt, \pi ... stay, with their whole name
            do n++; while (is_letter(p[n]));
            emit(out, p, n);
        }
        if (!n && *p == '_' && is_digit(p[1])) {  // 52_8 is 52_{8}
            do n++; while (is_digit(p[n]));
            emit(out, "_{", 2);
            emit(out, p + 1, n - 1);
            emit(out, "}", 1);
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

/* ---- A.2 Same answer? Second idea: evaluate ----
 *
 * A recursive-descent parser has one function for each level of precedence, written with the next one:
 *     sum      = product  { (+ | - | \pm | \mp) product }
 *     product  = power    { (* | / | nothing) power }             2x is 2*x
 *     power    = postfix  [ ^ power ]                             2^3^2 is 2^(3^2)
 *     postfix  = primary  { ! | % | degree }
 *     primary  = number | variable | ( sum ) | \frac A B | \sqrt[n] A | function argument
 * It builds no tree. It computes while it reads, and a variable is simply its value at the current point. For
 * another point the text is read once more.
 */
typedef struct {
    double complex z;  // the value
    double error;      // bound on the rounding error in z
    int64_t num, den;  // z as an exact fraction in lowest terms, den > 0; den = 0 when it isn't known
} Value;

typedef struct {
    const char *p, *end;  // what is still to be read
    int point, sign;      // which evaluation point; +1 or -1 for \pm
    int arithmetic_only;  // the calculator of chapter 6: numbers, + - * / and parentheses
    int nesting, bars;    // levels; is a | open?
    int variables;        // has there been a variable?
    int failed;           // not an expression, or it has no value
} Parser;

static const double ROUNDING = 0x1p-53;                     // half a unit in the last place of a double
static const int64_t EXACT_LIMIT = ((int64_t)1 << 62) - 1;  // the sum of two still fits an int64_t

static Value fail_value(Parser* s) {
    s->failed = 1;
    return (Value){0, 0, 0, 0};
}

static Value make_inexact(double complex z, double error) {
    return (Value){z, error + ROUNDING * cabs(z), 0, 0};
}

static Value make_exact(int64_t num, int64_t den) {  // den is not 0
    int64_t a = num < 0 ? -num : num, b = den < 0 ? -den : den;
    while (b) { int64_t r = a % b; a = b; b = r; }   // Euclid: a becomes the greatest common divisor
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
    if (b.z == 0 || (!b.den && cabs(b.z) <= b.error)) return fail_value(s);  // zero, as far as we can tell
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
        if (b.num == 0 && a.z == 0) return fail_value(s);
        Value result = make_exact(1, 1);
        for (int64_t n = llabs(b.num); n; n >>= 1) {
            if (n & 1) result = multiply(result, a);
            if (n > 1) a = multiply(a, a);
        }
        return b.num < 0 ? divide(s, make_exact(1, 1), result) : result;
    }
    double size = cabs(a.z);
    if (size == 0) return creal(b.z) > 0 ? make_exact(0, 1) : fail_value(s);
    double complex z;
    int real = cimag(a.z) == 0 && cimag(b.z) == 0;
    if (real && creal(a.z) > 0) z = pow(size, creal(b.z));
    else if (real && b.den % 2 == 1) z = pow(size, creal(b.z)) * (b.num % 2 ? -1 : 1);
    else z = cpow(a.z, b.z);
    double relative = cabs(b.z) * a.error / size + (fabs(log(size)) + 4) * (b.error + 4 * ROUNDING);
    return make_inexact(z, cabs(z) * relative);
}

enum { F_SIN, F_COS, F_TAN, F_COT, F_SEC, F_CSC, F_ASIN, F_ACOS, F_ATAN, F_LN, F_LOG, F_EXP, F_ABS, F_FLOOR,
       F_CEIL, LAST_FUNCTION = F_CEIL, N_SQRT, N_FRAC, N_PI, N_INFINITY, N_OPERATOR, N_VARIABLE };

// The names that count without a backslash, too. Any other command (\mu) is a variable of that name.
static const struct { const char* name; int kind; } NAMES[] = {
    {"sin", F_SIN}, {"cos", F_COS}, {"tan", F_TAN}, {"cot", F_COT}, {"sec", F_SEC}, {"csc", F_CSC},
    {"arcsin", F_ASIN}, {"arccos", F_ACOS}, {"arctan", F_ATAN}, {"asin", F_ASIN}, {"acos", F_ACOS},
    {"atan", F_ATAN}, {"ln", F_LN}, {"log", F_LOG}, {"exp", F_EXP}, {"abs", F_ABS}, {"floor", F_FLOOR},
    {"ceil", F_CEIL}, {"sqrt", N_SQRT}, {"frac", N_FRAC}, {"pi", N_PI}, {"infty", N_INFINITY},
    {"infinity", N_INFINITY}, {"inf", N_INFINITY}, {"oo", N_INFINITY}, {"cup", N_OPERATOR},
    {"cap", N_OPERATOR}, {"pm", N_OPERATOR}, {"mp", N_OPERATOR}, {"overline", N_OPERATOR},
    {"theta", N_VARIABLE}, {"alpha", N_VARIABLE}, {"beta", N_VARIABLE}, {"gamma", N_VARIABLE},
    {"delta", N_VARIABLE}, {"lambda", N_VARIABLE}, {"omega", N_VARIABLE}, {"sigma", N_VARIABLE},
    {"phi", N_VARIABLE},
};

// The longest known name at p, after a backslash or without one: its kind, -1 = none, and its length with the
// backslash. It may be the beginning of a longer word, because spaces get lost: \cotx is cot x.
static int match_name(int* length, const char* p, const char* end) {
    int kind = -1, backslash = p < end && *p == '\\';
    *length = 0;
    p += backslash;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES && p < end; i++) {
        if (NAMES[i].name[0] != *p) continue;
        int n = (int)strlen(NAMES[i].name);
        if (n + backslash <= *length || end - p < n || memcmp(p, NAMES[i].name, (size_t)n)) continue;
        kind = NAMES[i].kind;
        *length = n + backslash;
    }
    return kind;
}

// What comes next, after spaces; 0 = the end, or failed.
static char peek(Parser* s) {
    while (s->p < s->end && *s->p == ' ') s->p++;
    return s->p < s->end && !s->failed ? *s->p : 0;
}

static int accept(Parser* s, const char* token) {
    size_t n = strlen(token);
    if (!peek(s) || (size_t)(s->end - s->p) < n || memcmp(s->p, token, n)) return 0;
    s->p += n;
    return 1;
}

static Value parse_sum(Parser* s);
static Value parse_product(Parser* s, int as_argument);
static Value parse_power(Parser* s);
static Value parse_signed_power(Parser* s);
static Value parse_primary(Parser* s);

static Value parse_group(Parser* s) {  // ( sum ), and the same with { } and [ ]
    const char* close = *s->p == '(' ? ")" : *s->p == '[' ? "]" : "}";
    int bars = s->bars;
    s->p++;
    s->bars = 0;
    Value value = parse_sum(s);
    s->bars = bars;
    return accept(s, close) ? value : fail_value(s);
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
    if (num <= 0 || num >= den) return fail_value(s);  // 1\frac{3}{2}: a product or a slip? nobody can say
    s->p = ahead.p;
    return add(whole, make_exact(num, den));
}

// 0.1\overline{6}: digits that repeat behind a last place of 1/unit. r of them add digits / (unit (10^r -
// 1)).
static Value parse_repeating_digits(Parser* s, Value value, int64_t unit) {
    int64_t digits, power = 1, den;
    const char* start = s->p;
    if (!read_small_integer(s, &digits, 1)) return fail_value(s);
    for (; start < s->p; start++) power *= is_digit(*start) ? 10 : 1;
    if (!multiply_exact(&den, power - 1, unit)) return fail_value(s);
    return add(value, make_exact(digits, den));
}

// 12, 1`000, .5, 0.1\overline{6}, 3\frac{1}{2}
static Value parse_number(Parser* s) {
    int64_t num = 0, den = 1;
    int exact = 1, digits = 0, dot = 0;
    double value = 0, scale = 1;
    const char* start = s->p;
    for (; s->p < s->end; s->p++) {
        char c = *s->p;
        if (c == '`' || (c == ',' && s->arithmetic_only && !dot && is_thousands_comma(start, s->p))) continue;
        if (c == '.' && !dot) { dot = 1; continue; }
        if (!is_digit(c)) break;
        exact = exact && multiply_exact(&num, num, 10) && (!dot || multiply_exact(&den, den, 10));
        if (exact) num += c - '0';
        value = value * 10 + (c - '0');
        if (dot) scale *= 10;
        digits++;
    }
    if (!digits || !isfinite(value) || !isfinite(scale)) return fail_value(s);
    double inexact = value / scale;
    Value result = exact ? make_exact(num, den) : make_inexact(inexact, inexact * digits * ROUNDING);
    if (s->arithmetic_only) return result;
    if (!dot) return parse_mixed_number(s, result);
    return accept(s, "\\overline") ? parse_repeating_digits(s, result, den) : result;
}

// A variable whose name was just read, with its subscript: x, x_1, x_{12}, \theta. Its value is a real number
// of size 0.5 to 2.5 that depends on the name and the point alone, so both answers see the same one. At point
// 0 it is positive, at the others it may have either sign.
static Value parse_variable(Parser* s, const char* letters, int n) {
    uint64_t name = 0;  // the name as a number; 131 is only a multiplier that mixes well
    for (int i = 0; i < n; i++) name = name * 131 + (unsigned char)letters[i];
    if (accept(s, "_")) {
        const char* start = s->p;
        if (peek(s) == '{') while (s->p < s->end && *s->p != '}') s->p++;
        if (s->p >= s->end) return fail_value(s);
        for (s->p++; start < s->p; start++)
            if (is_word_character(*start)) name = name * 131 + (unsigned char)*start;
    }
    Rng rng = {name * 0x9E3779B97F4A7C15u + (uint64_t)s->point};
    random_u64(&rng);
    uint64_t bits = random_u64(&rng);
    double size = 0.5 + 2.0 * (double)(bits >> 11) * 0x1p-53;
    s->variables = 1;
    return make_inexact(s->point > 0 && (bits & 1) ? -size : size, 0);
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
        if (cabs(x) <= a.error) return fail_value(s);
        z = real && r > 0 ? log(r) : clog(x);
        break;
    case F_ABS: return a.den ? (a.num < 0 ? negate(a) : a) : make_inexact(cabs(x), a.error);
    case F_CEIL: return negate(apply_function(s, F_FLOOR, negate(a)));
    case F_FLOOR:  // C rounds a quotient toward zero, floor rounds it down
        if (a.den) return make_exact(a.num / a.den - (a.num % a.den < 0), 1);
        if (!real || !(fabs(r) < 1e15)) return fail_value(s);
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
    Value argument = next == '(' || next == '{' || next == '[' ? parse_group(s) : parse_product(s, 1);
    if (s->failed) return argument;
    Value value = apply_function(s, function, argument);
    if (function == F_LOG) value = divide(s, value, apply_function(s, F_LN, base));
    return raise_power(s, value, exponent);
}

// \sqrt{2}, \sqrt2, \sqrt[3]{2}, sqrt(2), sqrt 12. (\sqrt12 is the root of 1 and then a 2: see
// starts_factor.)
static Value parse_root(Parser* s, int backslash) {
    Value index = make_exact(2, 1);
    if (peek(s) == '[') index = parse_group(s);
    Value radicand = !backslash && is_digit(peek(s)) ? parse_number(s) : parse_argument(s);
    return raise_power(s, radicand, divide(s, make_exact(1, 1), index));
}

// A function, a constant or a variable.
static Value parse_name(Parser* s) {
    int length, kind = match_name(&length, s->p, s->end), backslash = *s->p == '\\';
    const char* letters = s->p + backslash;
    Value numerator;
    if (kind < 0) {  // one letter, or a whole command
        do s->p++; while (backslash && s->p < s->end && is_letter(*s->p));
        int n = (int)(s->p - letters);
        if (n == 1 && *letters == 'i' && peek(s) != '_') return make_inexact(_Complex_I, 0);
        if (n == 1 && *letters == 'e' && peek(s) != '_') return make_inexact(2.718281828459045235, 0);
        return n ? parse_variable(s, letters, n) : fail_value(s);
    }
    s->p += length;
    if (kind <= LAST_FUNCTION) return parse_function(s, kind);
    switch (kind) {
    case N_SQRT: return parse_root(s, backslash);
    case N_FRAC: numerator = parse_argument(s); return divide(s, numerator, parse_argument(s));
    case N_PI: return make_inexact(M_PI, 0);
    case N_INFINITY: return (Value){INFINITY, 0, 0, 0};
    case N_VARIABLE: return parse_variable(s, letters, length - backslash);
    }
    return fail_value(s);  // an operator where a value should be
}

static Value parse_primary(Parser* s) {
    if (++s->nesting > MAX_NESTING) return fail_value(s);
    Value value;
    char c = peek(s);
    if (is_digit(c) || c == '.') value = parse_number(s);
    else if (c == '(' || (!s->arithmetic_only && (c == '{' || c == '['))) value = parse_group(s);
    else if (s->arithmetic_only) value = fail_value(s);
    else if (is_letter(c) || c == '\\') value = parse_name(s);
    else if (c == '|' && !s->bars) {
        s->p++;
        s->bars = 1;
        value = apply_function(s, F_ABS, parse_sum(s));
        s->bars = 0;
        if (!accept(s, "|")) value = fail_value(s);
    } else value = fail_value(s);
    s->nesting--;
    return value;
}

static Value parse_postfix(Parser* s) {
    Value value = parse_primary(s);
    while (!s->arithmetic_only && !s->failed) {
        if (accept(s, "\"%\"")) value = divide(s, value, make_exact(100, 1));
        else if (accept(s, "\"degree\"")) value = multiply(value, make_inexact(M_PI / 180, 0));
        else if (accept(s, "!")) {
            if (value.den != 1 || value.num < 0 || value.num > 20) return fail_value(s);  // 21! > 2^63
            Value product = make_exact(1, 1);
            for (int64_t i = 2; i <= value.num; i++) product = multiply(product, make_exact(i, 1));
            value = product;
        } else break;
    }
    return value;
}

static Value parse_power(Parser* s) {
    Value base = parse_postfix(s);
    if (s->arithmetic_only || !accept(s, "^")) return base;
    if (++s->nesting > MAX_NESTING) return fail_value(s);  // 2^2^2^... nests, too
    Value exponent = parse_signed_power(s);
    s->nesting--;
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
    int length, kind;
    char c = peek(s);
    if (s->arithmetic_only || !c) return 0;
    if (c == '(' || c == '{' || c == '[' || (c == '|' && !s->bars)) return 1;
    if (c != '\\' && !is_letter(c)) return 0;
    kind = match_name(&length, s->p, s->end);
    return kind != N_OPERATOR && !(as_argument && kind >= 0 && kind <= LAST_FUNCTION);
}

// as_argument: what a function without parentheses applies to, \sin 2x, which ends at an operator or a
// function
static Value parse_product(Parser* s, int as_argument) {
    Value value = as_argument ? parse_power(s) : parse_signed_power(s);
    while (!s->failed) {
        if (starts_factor(s, as_argument)) value = multiply(value, parse_power(s));
        else if (as_argument) break;
        else if (accept(s, "*")) value = multiply(value, parse_signed_power(s));
        else if (s->arithmetic_only && accept(s, "//")) {  // 7//2 = 3, see chapter 6
            value = divide(s, value, parse_signed_power(s));
            if (!s->failed) value = apply_function(s, F_FLOOR, value);
        } else if (accept(s, "/")) value = divide(s, value, parse_signed_power(s));
        else break;
    }
    return value;
}

static Value parse_sum(Parser* s) {
    if (++s->nesting > MAX_NESTING) return fail_value(s);
    Value sum = make_exact(0, 1);
    for (int first = 1; !s->failed; first = 0) {
        int sign = 1;  // a sign in front of the first term is read with its first power
        if (!s->arithmetic_only && accept(s, "\\pm")) sign = s->sign;
        else if (!s->arithmetic_only && accept(s, "\\mp")) sign = -s->sign;
        else if (!first && accept(s, "-")) sign = -1;
        else if (!first && !accept(s, "+")) break;
        Value term = parse_product(s, 0);
        if (sign < 0) term = negate(term);
        sum = first ? term : add(sum, term);
    }
    s->nesting--;
    return sum;
}

// A part of a text. sign says which of its two values a part with \pm stands for: +1, -1, or 0 = not decided.
typedef struct { const char *p, *end; int sign; } Span;

static Span make_span(const char* text) { return (Span){text, text + strlen(text), 0}; }

// The value of an expression at a point. 1 = it has one. (A value that is infinite without rounding error is
// infinity itself; an overflow has an infinite error.) *variables becomes 1 when the expression has
// variables.
static int evaluate(Value* value, int* variables, Span text, int point) {
    Parser s = {text.p, text.end, point, text.sign, 0, 0, 0, 0, 0};
    *value = parse_sum(&s);
    *variables |= s.variables;
    if (s.failed || peek(&s)) return 0;
    return isfinite(value->error) && !isnan(creal(value->z)) && !isnan(cimag(value->z));
}

// Exact fractions are compared exactly. Other values may differ by what their rounding explains, and by 1e-12
// of their size: sqrt(2) is 1.414213562373 (13 digits), but not 1.4142. A value of which rounding has left
// nothing, such as 10^30 pi - 10^30 pi, would then "equal" every number, and a policy would find that out. So
// it equals none.
static int same_value(Value a, Value b) {
    if (a.den && b.den) return a.num == b.num && a.den == b.den;
    double size = fmax(cabs(a.z), cabs(b.z)), slack = 16 * (a.error + b.error);
    if (!isfinite(size)) return a.z == b.z;
    return slack <= 1e-6 * (1 + size) && cabs(a.z - b.z) <= slack + 1e-12 * size;
}

static int is_zero(Value a) { return cabs(a.z) <= 16 * a.error; }

// left - right of an equation at a point; 1 = it has a value
static int evaluate_difference(Value* value, int* variables, Span left, Span right, int point) {
    Value x, y;
    if (!evaluate(&x, variables, left, point) || !evaluate(&y, variables, right, point)) return 0;
    *value = add(x, negate(y));
    return isfinite(cabs(value->z));
}

// Two equations are the same when one difference, left - right, is a constant times the other. Their quotient
// must be the same at all points; written f(0) g(p) = f(p) g(0) it needs no division.
static int equations_equal(Span left_a, Span right_a, Span left_b, Span right_b) {
    Value f0 = {0, 0, 0, 0}, g0 = f0, f, g;
    int variables = 0;
    for (int point = 0; point <= EVALUATION_POINTS; point++) {
        if (!evaluate_difference(&f, &variables, left_a, right_a, point)) return 0;
        if (!evaluate_difference(&g, &variables, left_b, right_b, point)) return 0;
        if (is_zero(f) || is_zero(g)) return 0;  // 0 = 0 says nothing
        if (point == 0) { f0 = f; g0 = g; }
        else if (!same_value(multiply(f0, g), multiply(f, g0))) return 0;
    }
    return variables;
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
    if (n == sign) { n = 0; out[n++] = '0'; }  // -0 is 0
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

// Are two expressions equal at every evaluation point? Numbers need only one.
static int expressions_equal(Span a, Span b) {
    int equal, variables = 0;
    if (decimals_equal(&equal, a, b)) return equal;
    for (int point = 0; point < EVALUATION_POINTS; point++) {
        Value x, y;
        if (!evaluate(&x, &variables, a, point) || !evaluate(&y, &variables, b, point)) return 0;
        if (!same_value(x, y)) return 0;
        if (!variables) return 1;
    }
    return 1;
}

/* ---- A.3 Same answer? The shapes ----
 *
 * An answer is a list of items, mostly of one. An item is a word, a quantity with a unit, an equation, an
 * interval, a union, a tuple, a set, and in the end an expression. Each rule below peels one of these off and
 * compares what is inside. What fits no rule is unequal.
 */
typedef struct { int budget, depth; } Comparison;  // work left, which bounds the time; levels of items

static int compare_item(Span a, Span b, Comparison* c);
static int compare_list(Span a, Span b, const char* separator, int ordered, Comparison* c);

static Span trim_span(Span s) {
    while (s.p < s.end && *s.p == ' ') s.p++;
    while (s.end > s.p && s.end[-1] == ' ') s.end--;
    return s;
}

static int starts_with(const char* p, const char* end, const char* token) {
    size_t n = strlen(token);
    return (size_t)(end - p) >= n && !memcmp(p, token, n);
}

static int contains(Span s, const char* token) {
    for (; s.p < s.end; s.p++)
        if (starts_with(s.p, s.end, token)) return 1;
    return 0;
}

static int has_plus_minus(Span s) { return contains(s, "\\pm") || contains(s, "\\mp"); }

// The first place outside of brackets and quotes where one of the tokens stands, and which. NULL = nowhere.
static const char* find_outside(int* which, Span s, const char* const* tokens, int count) {
    int depth = 0, quoted = 0;
    for (const char* p = s.p; p < s.end; p++) {
        if (*p == '"') quoted = !quoted;
        if (quoted) continue;
        for (int i = 0; i < count && depth == 0; i++)
            if (starts_with(p, s.end, tokens[i])) { *which = i; return p; }
        depth += bracket_step(*p);
    }
    return NULL;
}

static int has_outside(Span s, const char* token) {
    int which;
    return find_outside(&which, s, &token, 1) != NULL;
}

// Is all of s one bracket, which closes at its very end?
static int is_bracketed(Span s) {
    if (s.end - s.p < 2 || bracket_step(*s.p) != 1 || bracket_step(s.end[-1]) != -1) return 0;
    int depth = 0;
    for (const char* p = s.p; p < s.end - 1; p++)
        if ((depth += bracket_step(*p)) == 0) return 0;
    return 1;
}

static Span inside(Span s) { return trim_span((Span){s.p + 1, s.end - 1, s.sign}); }

// The next character that counts: quotes don't, a space only between two digits, and a thousands separator is
// a comma. 0 = the end.
static int next_character(Span* s) {
    while (s->p < s->end) {
        const char* p = s->p++;
        if (*p == '"' || (*p == ' ' && !(is_digit(p[-1]) && is_digit(p[1])))) continue;
        return *p == '`' ? ',' : (unsigned char)*p;
    }
    return 0;
}

// (A text with \pm is equal to its twin of the other sign here. That is right: both lists contain both.)
static int text_equal(Span a, Span b) {
    int x, y;
    do {
        x = next_character(&a);
        y = next_character(&b);
    } while (x == y && x);
    return x == y;
}

// Is s words and not mathematics? Yes if it is one "..." with a letter in it. Yes if it is bare letters with
// a run of three or more that doesn't begin with a known name: Evelyn is a word; xy, \pi r and cotx are not.
static int is_word(Span s) {
    int word = 0, run = 0, length;
    if (s.end - s.p > 2 && *s.p == '"' && memchr(s.p + 1, '"', (size_t)(s.end - s.p - 1)) == s.end - 1) {
        while (++s.p < s.end) word |= is_letter(*s.p);
        return word;
    }
    for (; s.p < s.end; s.p++) {
        if (!is_letter(*s.p) && !strchr(" -'\"", *s.p)) return 0;
        run = is_letter(*s.p) ? run + 1 : 0;
        if (run == 3 && match_name(&length, s.p - 2, s.end) < 0) word = 1;
    }
    return word;
}

static int lower_case(int c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; }

static int next_word_character(Span* s) {  // small letters, without parentheses: \text{(C)} is C
    int c;
    do c = next_character(s); while (c == '(' || c == ')');
    return lower_case(c);
}

static int words_equal(Span a, Span b) {
    int x, y;
    do {
        x = next_word_character(&a);
        y = next_word_character(&b);
    } while (x == y && x);
    return x == y;
}

// Units that are known without \text{}, and their one spelling. "unit" stands for no particular one.
static const char* const UNITS[][2] = {
    {"cm", "cm"}, {"centimeter", "cm"}, {"mm", "mm"}, {"millimeter", "mm"}, {"km", "km"}, {"kilometer", "km"},
    {"meter", "m"}, {"in", "in"}, {"inch", "in"}, {"inche", "in"}, {"ft", "ft"}, {"foot", "ft"},
    {"feet", "ft"}, {"yd", "yd"}, {"yard", "yd"}, {"mi", "mi"}, {"mile", "mi"}, {"mph", "mph"},
    {"milesperhour", "mph"}, {"hr", "hr"}, {"hour", "hr"}, {"min", "min"}, {"minute", "min"}, {"sec", "sec"},
    {"second", "sec"}, {"kg", "kg"}, {"kilogram", "kg"}, {"gram", "g"}, {"lb", "lb"}, {"pound", "lb"},
    {"oz", "oz"}, {"ounce", "oz"}, {"deg", "degree"}, {"dollar", "$"}, {"cent", "cent"}, {"percent", "%"},
    {"unit", ""},
};

enum { MAX_UNIT = 24 };

// The one spelling of the unit that is called [p, end) and raised to power (0 = it isn't): "square inches" is
// in2. 1 = a unit of the table, 0 = some other word, -1 = too long to be one.
static int name_unit(char unit[MAX_UNIT], const char* p, const char* end, char power) {
    static const char* const prefixes[] = {"2square", "2sq", "3cubic"};
    char name[MAX_UNIT - 1];
    int n = 0;
    for (; p < end; p++) {
        if (*p == ' ' || *p == '.') continue;
        if (n >= MAX_UNIT - 2) return -1;
        name[n++] = (char)lower_case(*p);
    }
    name[n] = 0;
    char* word = name;
    for (int i = 0; i < 3 && word == name; i++)
        if (starts_with(name, name + n, prefixes[i] + 1)) {
            word += strlen(prefixes[i] + 1);
            power = prefixes[i][0];
        }
    n = (int)strlen(word);
    if (n > 2 && word[n - 1] == 's') word[n - 1] = 0;  // the plural
    const char* spelled = NULL;
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++)
        if (!strcmp(word, UNITS[i][0])) spelled = UNITS[i][1];
    snprintf(unit, MAX_UNIT, "%s%c", spelled ? spelled : word, spelled && !spelled[0] ? 0 : power);
    return spelled != NULL;
}

// Takes the unit off a quantity: 5"cm"^2, 5.4cents, "$"36, 90"degree", 50"%". *s keeps the number, unit gets
// the name. 1 = there was one.
static int split_unit(Span* s, char unit[MAX_UNIT]) {
    static const char* const angles[] = {"sin", "cos", "tan", "cot", "sec", "csc"};
    const char *end = s->end, *start;
    char power = 0;
    unit[0] = 0;
    if (starts_with(s->p, end, "\"$\"")) {
        memcpy(unit, "$", 2);
        *s = trim_span((Span){s->p + 3, end, s->sign});
        return 1;
    }
    if (end - s->p > 4 && starts_with(end - 4, end, "^{") && end[-1] == '}') {  // ^{2}
        power = end[-2];
        end -= 4;
    } else if (end - s->p > 2 && end[-2] == '^' && is_digit(end[-1])) {         // ^2
        power = end[-1];
        end -= 2;
    }
    if (end - s->p > 2 && end[-1] == '"') {
        for (start = end - 2; start > s->p && *start != '"';) start--;
        if (start == s->p || name_unit(unit, start + 1, end - 1, power) < 0) return 0;
        for (int i = 0; i < 6 && !strcmp(unit, "degree"); i++)
            if (contains(*s, angles[i])) return 0;  // \sin 30^\circ isn't a number of degrees
    } else {
        for (start = end; start > s->p && (is_letter(start[-1]) || start[-1] == ' ');) start--;
        if (start == end || start == s->p || !strchr("0123456789)}", start[-1])) return 0;
        const char* word = start + (*start == ' ');
        int letters = 0, length, known = name_unit(unit, word, end, power);
        while (word + letters < end && is_letter(word[letters])) letters++;
        if (known < 0 || (!known && letters < 4)) return 0;  // 2xy is a product
        if (match_name(&length, word, end) >= 0) return 0;   // and so is 8pi
    }
    *s = trim_span((Span){s->p, start, s->sign});
    return 1;
}

// Two quantities. A unit that only one side names may be left out (90 for 90^\circ), two different ones never
// agree, and nothing is converted. People write 50\% for 50, when asked for percent, and for 0.5: both are
// accepted.
static int compare_quantities(Span a, Span b, const char* unit_a, const char* unit_b, Comparison* c) {
    Value x, y, hundred = make_exact(100, 1);
    int variables = 0, percent_a = !strcmp(unit_a, "%"), percent_b = !strcmp(unit_b, "%");
    if (unit_a[0] && unit_b[0] && strcmp(unit_a, unit_b)) return 0;
    if (compare_item(a, b, c)) return 1;
    if (percent_a == percent_b) return 0;
    if (!evaluate(&x, &variables, a, 0) || !evaluate(&y, &variables, b, 0) || variables) return 0;
    return same_value(percent_a ? x : multiply(x, hundred), percent_b ? y : multiply(y, hundred));
}

static const char* const RELATIONS[] = {"<=", ">=", "!=", "=", "<", ">"};
enum { R_LE, R_GE, R_NOT_EQUAL, R_EQUAL, R_LESS, R_GREATER, RELATION_COUNT };

static int has_relation(Span s) {
    int which;
    return find_outside(&which, s, RELATIONS, RELATION_COUNT) != NULL;
}

// Cuts s at its relations: 0<x<=5 has three parts. Returns the number of parts, 0 = more than three.
static int split_relations(Span part[3], int relation[2], Span s) {
    for (int parts = 0, which; parts < 3;) {
        const char* cut = find_outside(&which, s, RELATIONS, RELATION_COUNT);
        part[parts++] = trim_span((Span){s.p, cut ? cut : s.end, s.sign});
        if (!cut) return parts;
        if (parts < 3) relation[parts - 1] = which;
        s.p = cut + strlen(RELATIONS[which]);
    }
    return 0;
}

// Is s a name that an equation may give a value to: x, x_{1}, \theta, f(x), "Area"? Not xy, not \sin(x).
static int is_name(Span s) {
    int length, kind = match_name(&length, s.p, s.end);
    const char* p = s.p;
    if (p < s.end && *p == '"') return is_word(s);
    if (kind >= 0 && kind != N_VARIABLE) return 0;
    if (kind < 0 && (p == s.end || (!is_letter(*p) && *p != '\\'))) return 0;
    if (kind >= 0) p += length;
    else do p++; while (*s.p == '\\' && p < s.end && is_letter(*p));
    if (p + 1 < s.end && *p == '_') {  // a subscript is one character or a group
        const char* close = p[1] == '{' ? find_closing_brace(p + 1, s.end) : p + 1;
        p = close ? close + 1 : s.end;
    }
    return p == s.end || (*p == '(' && is_bracketed((Span){p, s.end, 0}));
}

// Writes the interval that an inequality for one name means: x >= 3 is [3,\infty), 0 < x <= 5 is (0,5]. text
// has MAX_NORMALIZED bytes. 1 = done.
static int write_interval(char* text, Span* name, const Span part[3], const int relation[2], int parts) {
    Span low = make_span("-\\infty"), high = make_span("\\infty");
    int low_closed = 0, high_closed = 0, all_rise = 0;
    int at = parts == 3 || !is_name(part[0]);  // which part is the name
    *name = part[at];
    if (parts < 2 || !is_name(*name)) return 0;
    for (int i = 0; i < parts - 1; i++) {
        int rises = relation[i] == R_LE || relation[i] == R_LESS;
        int closed = relation[i] == R_LE || relation[i] == R_GE;
        int left = at == 1 && i == 0;  // does the bound stand left of the name?
        if (relation[i] == R_EQUAL || relation[i] == R_NOT_EQUAL) return 0;
        if (i == 1 && rises != all_rise) return 0;  // 1 < x > 5
        all_rise = rises;
        if (rises == left) { low = part[left ? 0 : i + 1]; low_closed = closed; }
        else { high = part[left ? 0 : i + 1]; high_closed = closed; }
    }
    int n = snprintf(text, MAX_NORMALIZED, "%c%.*s,%.*s%c", low_closed ? '[' : '(', (int)(low.end - low.p),
                     low.p, (int)(high.end - high.p), high.p, high_closed ? ']' : ')');
    return n < MAX_NORMALIZED;
}

// Items with a relation. An equation for a name may be answered by the value alone: x = 5 by 5, f(x) = 2x by
// 2x, x \in [0,1] (normalized to x=[0,1]) by [0,1]. An inequality may be answered by its interval.
static int compare_relations(Span a, Span b, Comparison* c) {
    Span value[2] = {a, b}, name[2] = {a, b}, part[2][3] = {{a, a, a}, {b, b, b}};
    int relation[2][2] = {{-1, -1}, {-1, -1}}, parts[2], equation[2], named[2] = {0, 0};
    char interval[2][MAX_NORMALIZED];
    for (int k = 0; k < 2; k++) {
        parts[k] = split_relations(part[k], relation[k], value[k]);
        equation[k] = parts[k] == 2 && relation[k][0] == R_EQUAL;
        if (equation[k]) {
            int right = !is_name(part[k][0]);  // x = 5 or 5 = x
            name[k] = part[k][right];
            value[k] = part[k][!right];
            named[k] = is_name(name[k]);
        } else if (write_interval(interval[k], &name[k], part[k], relation[k], parts[k])) {
            value[k] = make_span(interval[k]);
            named[k] = 1;
        } else if (parts[k] != 1) return 0;
    }
    int same_name = named[0] && named[1] && text_equal(name[0], name[1]);
    int value_alone = (named[0] && parts[1] == 1) || (named[1] && parts[0] == 1);
    if ((same_name || value_alone) && compare_item(value[0], value[1], c)) return 1;
    return equation[0] && equation[1] && equations_equal(part[0][0], part[0][1], part[1][0], part[1][1]);
}

static int compare_item(Span a, Span b, Comparison* c) {
    char unit_a[MAX_UNIT], unit_b[MAX_UNIT];
    a = trim_span(a);
    b = trim_span(b);
    c->budget -= (int)(a.end - a.p) + (int)(b.end - b.p) + 1;
    if (c->budget < 0 || a.p == a.end || b.p == b.end || c->depth >= 12) return 0;
    if (text_equal(a, b)) return 1;
    if (is_word(a) || is_word(b)) return words_equal(a, b);
    int equal, units = split_unit(&a, unit_a) + split_unit(&b, unit_b);
    int bracket_a = is_bracketed(a), tuple_a = bracket_a && has_outside(inside(a), ",");
    int bracket_b = is_bracketed(b), tuple_b = bracket_b && has_outside(inside(b), ",");
    c->depth++;
    if (units) equal = compare_quantities(a, b, unit_a, unit_b, c);
    else if (has_relation(a) || has_relation(b)) equal = compare_relations(a, b, c);
    else if (has_outside(a, "\\cup") || has_outside(b, "\\cup")) equal = compare_list(a, b, "\\cup", 0, c);
    else if (tuple_a && tuple_b)  // (0,1] isn't [0,1]; the order counts, except in a set
        equal = *a.p == *b.p && a.end[-1] == b.end[-1] &&
                compare_list(inside(a), inside(b), ",", *a.p != '{', c);
    else if (bracket_a && !tuple_a && *a.p != '[') equal = compare_item(inside(a), b, c);  // (5) is 5
    else if (bracket_b && !tuple_b && *b.p != '[') equal = compare_item(a, inside(b), c);
    else if (bracket_a && bracket_b && !tuple_a && !tuple_b) equal = compare_item(inside(a), inside(b), c);
    else equal = expressions_equal(a, b);
    c->depth--;
    return equal;
}

// Cuts s at its separators. An item with \pm counts as two, one for each sign. Returns how many, -1 = too
// many.
static int split_items(Span* items, Span s, const char* separator) {
    for (int n = 0, which;;) {
        const char* cut = find_outside(&which, s, &separator, 1);
        Span item = trim_span((Span){s.p, cut ? cut : s.end, s.sign});
        int copies = s.sign == 0 && has_plus_minus(item) ? 2 : 1;
        if (n + copies > MAX_ITEMS) return -1;
        items[n++] = item;
        if (copies == 2) {
            items[n - 1].sign = 1;
            items[n] = item;
            items[n++].sign = -1;
        }
        if (!cut) return n;
        s.p = cut + strlen(separator);
    }
}

// Two lists have as many items and each finds its own partner: the one in its place, or any that is still
// free.
static int compare_list(Span a, Span b, const char* separator, int ordered, Comparison* c) {
    Span items_a[MAX_ITEMS], items_b[MAX_ITEMS];
    int used[MAX_ITEMS] = {0}, n = split_items(items_a, a, separator);
    if (n < 0 || split_items(items_b, b, separator) != n) return 0;
    for (int i = 0; i < n; i++) {
        int j = ordered ? i : 0, stop = ordered ? i + 1 : n;
        while (j < stop && (used[j] || !compare_item(items_a[i], items_b[j], c))) j++;
        if (j == stop) return 0;
        used[j] = 1;
    }
    return 1;
}

// Are two final answers the same mathematics? a and b are what extract_* finds or a data set calls the
// answer: LaTeX, Unicode or plain typing. 1 = the same. 0 = different, not understood, empty, or longer than
// MAX_ANSWER bytes; but the same text is equal to itself at any length. Symmetric, because the two are put in
// a fixed order first. The time grows linearly with the length. The head of the chapter says what "the same"
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
    if (text_equal(x, y)) return 1;
    Comparison c = {64 * (first.length + second.length + 2), 0};
    if (compare_list(x, y, ",", 0, &c)) return 1;
    if (*x.p == '{' && is_bracketed(x)) x = inside(x);  // the solutions 1, 2 are the set {2, 1}
    if (*y.p == '{' && is_bracketed(y)) y = inside(y);
    return compare_list(x, y, ",", 0, &c);
}

/* ---- A.5 Shown in lesson 5 ---- */

// Solves left = right for x when both sides are linear in it: take the difference at two points and follow
// the straight line to zero, x = x0 - f0 (x1 - x0) / (f1 - f0). NAN = there is no solution, or an expression
// is wrong.
static double solve_linear(const char* left, const char* right) {
    Value x[2], f[2];
    int variables = 0;
    for (int point = 0; point < 2; point++) {
        if (!evaluate(&x[point], &variables, make_span("x"), point)) return NAN;
        if (!evaluate_difference(&f[point], &variables, make_span(left), make_span(right), point)) return NAN;
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
    printf("\nWhat it sees of (x+1)^2 are its values at %d fixed points:\n\n  point", EVALUATION_POINTS);
    for (int i = 0; i < 4; i++) printf("%12s", columns[i]);
    for (int point = 0; point < EVALUATION_POINTS; point++) {
        printf("\n  %5d", point);
        for (int i = 0; i < 4; i++) {
            Value value;
            int variables = 0, ok = evaluate(&value, &variables, make_span(columns[i]), point);
            printf("%12.4g", ok ? creal(value.z) : NAN);
        }
    }
    printf("\n\n");
}

/* ---- A.4 The calculator of chapter 6 ----
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
    Parser s = {expression, expression + length, 0, 0, 1, 0, 0, 0, 0};
    Value value = parse_sum(&s);
    if (s.failed || peek(&s)) return 0;
    return print_value(out, cap, value);
}

// ==========================================================================================================
// The command line
// ==========================================================================================================
//
// Nothing below teaches reinforcement learning: it parses options, prints tables and calls the chapters.

// ---- text for people

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
    Reward r = {.kind = &reward_kinds[0]};
    int models = 0;
    *judge = 0;
    for (const char* part = text;; part++) {
        char name[PATH_SIZE];
        size_t n = strcspn(part, "+");
        snprintf(name, sizeof name, "%.*s", (int)n, part);
        if (strncmp(name, "model:", 6)) {
            const RewardKind* kind = find_reward(name);
            if (r.paid) fail(2, "--reward %s has two reward functions; one is enough", text);
            r.kind = kind;
            r.paid = 1;
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

static double column_value(const Column* c, const void* record) {
    return *(const double*)((const char*)record + c->at);
}

static void write_record(FILE* file, long step, const Metrics* s) {
    fprintf(file, "%ld", step);
    for (int i = 0; i < RL_COLUMNS; i++) {
        double x = column_value(&rl_columns[i], s);
        fprintf(file, isnan(x) ? "," : ",%.6g", x);
    }
    fprintf(file, "\n");
}

static void print_titles(void) {
    printf("%6s", "update");
    for (int i = 0; i < RL_COLUMNS; i++)
        if (rl_columns[i].title) printf("%*s", rl_columns[i].width, rl_columns[i].title);
    printf("\n");
}

// One line for the n updates since the last one: means over them. sum (RL_COLUMNS).
static void print_means(long step, const double* sum, int n, double held_out) {
    printf("%6ld", step);
    for (int i = 0; i < RL_COLUMNS; i++) {
        const Column* c = &rl_columns[i];
        double x = c->at == offsetof(Metrics, held_out) ? held_out : sum[i] / n;
        if (c->title && !isnan(x)) printf("%*.*f", c->width, c->digits, x);
    }
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
    Group* group = groups_new(o->examples_per_step, o->num_samples, q.longest + room + 1);
    int* chosen = allocate((size_t)o->examples_per_step, sizeof(int));
    long steps = o->num_steps ? o->num_steps
                              : (long)o->num_epochs * max_int(1, q.count / o->examples_per_step);
    Text header = {0};
    text_printf(&header, "step");
    for (int i = 0; i < RL_COLUMNS; i++) text_printf(&header, ",%s", rl_columns[i].name);
    Run run = run_begin(o->out, o->resume, header.data, step, steps, o->log_every, o->save_every);
    printf("reinforcement learning (%s): %ld updates of %d questions x %d rollouts\n  reward: %s\n",
           o->algo, steps, o->examples_per_step, o->num_samples, o->reward);
    print_titles();
    double sum[RL_COLUMNS] = {0};
    while (run_goes_on(&run)) {
        deck_deal(chosen, &deck, run.step, o->examples_per_step);
        Metrics s = rl_step(l, group, &q, chosen, run.step, lr_schedule(run.step, steps, 0, 0.0));
        for (int i = 0; i < RL_COLUMNS; i++) sum[i] += column_value(&rl_columns[i], &s);
        run_count(&run, s.loss + s.entropy + s.value_loss, s.grad_norm);
        n++;
        if (o->eval_every && run.step % o->eval_every == 0) {
            Evaluation e = evaluate_model(l->policy, &test, o->eval_examples, o->eval_samples, o->sample,
                                          l->reward.kind, NULL, o->seed + 2);
            s.held_out = e.pass[0];
            evaluation_free(&e);
        }
        write_record(run.metrics, run.step - 1, &s);
        if (run_logs(&run) || !isnan(s.held_out)) {
            print_means(run.step, sum, n, s.held_out);
            memset(sum, 0, sizeof sum);
            n = 0;
        }
        if (run_saves(&run)) save_rl(l, options, run.step);
    }
    groups_free(group, o->examples_per_step);
    questions_free(&q), questions_free(&test), text_free(&header);
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
    const char *questions, *eval_questions, *annotator, *loss;
    int per_question, most_pairs, batch_size, warmup_steps;
    float noise;
} PairOptions;

// The two commands that train on pairs. Their defaults are what differs.
typedef struct {
    const char *name, *what, *out, *loss, *annotator;
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
    PairOptions o = {.rl = rl_defaults(), .annotator = c->annotator, .loss = c->loss, .per_question = 4,
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
        {"annotator", OPTION_TEXT, &o->annotator, 0, 0, "verifier, demos, mixed, longer, shorter, wordy", 1, 0},
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
    PairRules rules = {find_annotator(o->annotator), find_reward(r->reward), o->per_question, noise, seed + 1};
    Pairs p = {0};
    int used = 0;
    printf("%s: %d answers to each of %d questions\n  annotator: %s\n", path, r->num_samples, q.count,
           rules.annotator->what);
    fflush(stdout);
    int K = r->num_samples, together = max_int(1, EVAL_ROWS / K);
    for (int from = 0; from < q.count; from += together) {
        int B = min_int(together, q.count - from);
        Rollout* rollouts = answer_questions(m, &q, from, B, K, r->sample, seed);
        for (int i = 0; i < B; i++) {
            int before = p.count;
            annotate(&p, &q.list[from + i], from + i, rollouts + (size_t)i * K, K, &rules);
            used += p.count > before;
        }
        rollouts_free(rollouts);
    }
    if (!p.count)
        fail(2, "no pair could be made from %s: the answers to each question all have the same score; try "
                "more --num-samples or another --annotator", path);
    limit_pairs(&p, most, rules.seed);
    printf("  %d pairs, from %d questions that have answers of both kinds\n", p.count, used);
    questions_free(&q);
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
    check_sampling(&o.rl), find_annotator(o.annotator), find_reward(o.rl.reward);
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
                                                   "top-k", "top-p", "annotator", "pairs-per-question", NULL},
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
    check_sampling(r), find_annotator(o->annotator);
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
    float* score = allocate((size_t)n, sizeof(float));
    char** answer = allocate((size_t)n, sizeof(char*));
    int *kept = allocate((size_t)n, sizeof(int)), together = max_int(1, EVAL_ROWS / K);
    for (int from = 0; from < q.count; from += together) {
        int B = min_int(together, q.count - from);
        Rollout* rollouts = answer_questions(m, &q, from, B, K, o->sample, o->seed + 4);
        for (int i = 0; i < B; i++) {
            const Rollout* r = rollouts + (size_t)i * K;
            float* own = score + (size_t)(from + i) * K;
            grade_rollouts(own, r, K, q.list[from + i].truth, reward.kind);
            if (reward.model) add_model_rewards(own, reward.paid, reward.model, r, K);
            for (int k = 0; k < K; k++) {
                mean += own[k] / (double)n;
                char* text = answer[(size_t)(from + i) * K + k] = rollout_answer(&r[k], &q.list[from + i]);
                if (!text) own[k] = (float)NAN;                  // not to be kept
            }
        }
        rollouts_free(rollouts);
    }
    float above = reward.paid ? 0.0f : -INFINITY;    // a score of 0 means wrong only to a verifier
    if (reward.model) model_free(&judge);
    int M = keep_answers(kept, score, q.count, K, rule, above, o->seed + 5);
    if (!M && reward.paid)
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
    text_free(&text), free(score), free(answer), free(kept), questions_free(&q);
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
            Grades g = grade_rollouts(reward, r + (size_t)i * K, K, question->truth, kind);
            evaluation_add(&l.pass, K, g.correct);
            vote_on_question(&l, r + (size_t)i * K, K, question->truth, kind);
            l.pass.length += (double)g.tokens, l.prompt += question->prompt.length;
        }
        rollouts_free(r);
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
    rollouts_free(rollouts);
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
    const RewardKind* kind = setup.learner.reward.kind;
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
    text_free(&out), rollouts_free(first), rollouts_free(last);
    evaluation_free(&before), evaluation_free(&after), questions_free(&test);
    setup_free(&setup);
    return 0;
}

// ---- ./rl trace: one update under the microscope, on a model and a question of the reader's choice

static int first_rewarded(const Group* g, int K) {
    for (int k = 0; k < K; k++) if (g->reward[k] > 0.5f) return k;
    return 0;
}

// Mean change of log pi(y|x), in nats per rollout, of those with a positive and of those with a negative advantage.
static void print_mean_change(const Group* g, int K, const float* other, const char* what) {
    int T1 = g->rollouts->T - 1, count[2] = {0, 0};
    double change[2] = {0.0, 0.0};
    for (int k = 0; k < K; k++) {
        int positive = g->total[k] > 0.0f, side = positive || g->total[k] == 0.0f ? 0 : 1;
        if (g->total[k] == 0.0f) continue;
        count[side]++;
        for (int i = k * T1; i < (k + 1) * T1; i++) if (g->mask[i]) change[side] += (double)other[i] - g->logp_old[i];
    }
    printf("\n%s, mean change of log pi(y|x) in nats:\n\n", what);
    if (count[0]) printf("   %+10.4f   the %d with a positive advantage\n", change[0] / count[0], count[0]);
    if (count[1]) printf("   %+10.4f   the %d with a negative one\n", change[1] / count[1], count[1]);
}

// The tokens that learn the most: what reaches the logit of a sampled token is dlogp x (1 - p), chapter 3.
static void print_decisions(const Rollout* r, const float* logp, const float* dlogp) {
    int done[3] = {-1, -1, -1};
    double sum = 0.0;
    char text[24];
    for (int t = r->prompt; t < r->prompt + r->length; t++)
        sum += r->mask[t] ? fabs((double)dlogp[t - 1]) * (1.0 - exp((double)logp[t - 1])) : 0.0;
    if (sum == 0.0) return;
    printf("\nWhat reaches the logit of a sampled token is dlogp x (1 - p). Most of it goes to\n\n");
    for (int i = 0; i < 3; i++) {
        double most = 0.0;
        for (int t = r->prompt; t < r->prompt + r->length; t++) {
            double x = fabs((double)dlogp[t - 1]) * (1.0 - exp((double)logp[t - 1]));
            if (!r->mask[t] || x <= most || t == done[0] || t == done[1]) continue;
            most = x;
            done[i] = t;
        }
        if (done[i] < 0) return;
        printf("   %5.1f%%  t = %d, %s\n", 100.0 * most / sum, done[i] - r->prompt, token_text(text, r->ids[done[i]]));
    }
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
    static const char* const before_after[] = {"before", "after", "change"};
    static const char* const two_models[] = {"A", "B", "B - A"};
    RlOptions o = rl_defaults();
    Option options[RL_OPTIONS] = {{0}};
    const char *text = NULL, *compare = NULL;
    int chosen = -1, first = 0;
    o.model = "out/run/rl";
    o.out = "";
    o.num_samples = 8;
    o.examples_per_step = 1;
    Option more[] = {
        {"answer", OPTION_TEXT, &o.answer, 0, 0, "the right answer: brings reward, loss and update", 0, 0},
        {"compare", OPTION_TEXT, &compare, 0, 0, "a second model that looks at the same rollouts", 0, 0},
        {"rollout", OPTION_INT, &chosen, -1, 4095, "which one token by token; -1 = the first rewarded", 0, 0},
        {"lr", OPTION_FLOAT, &o.lr, 0, 10, "of the update, times --init-lr-frac's default", 0, 0}};
    int count = sampling_options(options, &o);
    memcpy(options + count, more, sizeof more);
    method_options(options + count + (int)(sizeof more / sizeof *more), &o);
    set_method(&o, asked_algo(argc, argv));
    if (asked_for_help(argc, argv, "trace - one update on one question: rollouts, rewards, loss, token by token",
                       "./rl trace \"QUESTION\" [--option=value ...]", options))
        return 0;
    if (!parse_options(options, argc, argv, &text, 1) || !*text)
        fail(2, "a question is missing: ./rl trace \"Tom has 3 pens and buys 4 more. How many pens does "
                "Tom have now?\" --answer 7");
    if (chosen >= o.num_samples)
        fail(2, "--rollout %d: there are %d rollouts, 0 to %d; --num-samples asks for more", chosen,
             o.num_samples, o.num_samples - 1);
    o.minibatch = min_int(o.minibatch, 1);
    o.resample = 0;                       // there is one question
    check_sampling(&o);
    check_method(&o, options);
    set_threads(o.threads);
    Setup setup;
    Model second = {0};
    setup_load(&setup, &o, 0);
    Model* m = &setup.policy;
    if (compare) second = load_tagged_model(compare);
    Question question = {.prompt = question_prompt(text, m), .question = text, .truth = copy_text(o.answer ? o.answer : "")};
    Questions q = {.list = &question, .count = 1, .longest = question.prompt.length};
    int K = o.num_samples, T = q.longest + min_int(o.sample.max_new_tokens, m->config.context) + 1;
    if (compare && second.config.context < min_int(m->config.context, T - 1))
        fail(2, "the context of %s, %d tokens, is too short for the question and %d new tokens", compare,
             second.config.context, o.sample.max_new_tokens);
    Group* g = groups_new(1, K, T);
    float* other = allocate((size_t)K * (size_t)(T - 1), sizeof(float));
    Metrics s = {0};
    if (o.answer) s = rl_step(&setup.learner, g, &q, &first, 0, 1.0);
    else {
        sample_rollouts(g->rollouts, worker(m), &question.prompt, 1, K, o.sample, tool_calculator, o.seed + 1, 0);
        shift_mask(g->mask, g->rollouts->mask, K, T);
    }
    if (compare || o.answer) score_rollouts(other, compare ? &second : m, g->rollouts, K);
    if (chosen < 0) chosen = o.answer ? first_rewarded(g, K) : 0;
    const float* shown = compare || o.answer ? other : NULL;
    const char* const* names = compare ? two_models : before_after;
    print_wrapped("Question", text);
    if (o.answer) printf("Answer    %s, reward %s, method %s\n", o.answer, o.reward, o.algo);
    printf("Model     %s%s\n", compare ? "A = " : "", o.model);
    if (compare) printf("          B = %s\n", compare);
    printf("\n%d rollouts%s, seed %llu:\n\n", K, compare ? ", sampled by A" : "", (unsigned long long)o.seed);
    print_rollouts(g, K, o.answer != NULL, shown, names, chosen);
    if (o.answer) {
        printf("\nOne update: loss %.6f, gradient norm %.4f, learning rate %.2e.\n", g->loss, s.grad_norm, s.lr);
        if (!g->trained) printf("All advantages are 0: nothing is learned from this group. More --num-samples may help.\n");
        print_mean_change(g, K, other, compare ? "From A to B" : "By this update");
    }
    printf("\nRollout %d, token by token; m is the mask%s.\n\n", chosen,
           o.answer ? ",\ndlogp = d loss / d log pi in thousandths" : "");
    size_t at = (size_t)chosen * (size_t)(T - 1);
    int learned = o.answer && g->trained;
    print_tokens(&g->rollouts[chosen], g->logp_old + at, shown ? shown + at : NULL, names, learned ? g->dlogp + at : NULL);
    if (learned) print_decisions(&g->rollouts[chosen], g->logp_old + at, g->dlogp + at);
    printf("\nTake away: %s\n",
           o.answer ? "within an answer every sampled token has the same advantage, and\n"
                      "every forced one dlogp 0. A token that was certain has nothing to learn; the\n"
                      "open decisions do."
                    : "log pi(y|x) is a sum over sampled tokens, without the forced ones.\n"
                      "With --answer N come reward, advantage and one update.");
    groups_free(g, 1), free(other), tokens_free(&question.prompt), free(question.truth), setup_free(&setup);
    if (compare) model_free(&second);
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
    {"vote", "majority vote of many answers, instead of training", command_vote},
    {"elicit", "pass@k before and after: did training teach, or only elicit?", command_elicit},
    {"grade", "judges a file of anybody's answers, or explains one verdict", command_grade},
    {"overlap", "which questions of one file also stand in another", command_overlap},
    {"sample", "answers to your own question", command_sample},
    {"trace", "one question: its rollouts, and one of them token by token", command_trace},
    {"lesson", "the worked numbers of a chapter: lesson 7, lesson all", command_lesson},
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
