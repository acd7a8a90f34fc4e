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
     Appendix: when are two answers the same?         The command line

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
#ifndef RL_NO_MAIN      // compiled alone, the book does not call what docs/tools.c runs
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-const-variable"
#endif

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
 * Three averages rate a single state or action. They belong to one policy and are wrong for the next one:
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
 * The one fact on which every later chapter stands: log p(tau) is a SUM of log pi terms and log p terms. Only
 * the first kind contains theta, the parameters of the policy. So
 *
 *     d log p(tau) / d theta = sum over t of  d log pi(a_t | s_t) / d theta
 *
 * J is the sum over all tau of p(tau) G(tau). With d p = p d log p (the "log-derivative trick") its
 * derivative is an average over trajectories again. This is REINFORCE (Williams 1992):
 *
 *     dJ / d theta = E[ G * d log p(tau) / d theta ]
 *
 * Trap: the dynamics do matter. They decide which trajectories occur and what G is. They are only not needed
 * as a formula.
 *
 * The world of this chapter is a chain of five states. Both ends are final; entering state 4 pays 1.
 *
 *     [0] <-> 1 <-> 2 <-> 3 <-> [4]       actions: left, right. One time in six (a die shows 6) the step
 *      end                    end, +1     slips and goes the other way.
 *
 * Solved by hand for gamma = 1. Let u be the probability that a step really goes right, d = 1 - u, x = d / u.
 * Bellman says V(s) = u V(s+1) + d V(s-1), which is the same as V(s+1) - V(s) = x (V(s) - V(s-1)): each gap
 * is x times the gap before it. With V(0) = 0 and 1 for entering state 4 the gaps add up to 1:
 *
 *     coin flip,       pi(right) = 1/2:  u = 1/2 * 5/6 + 1/2 * 1/6 = 1/2, x = 1:   V = 1/4,  1/2,   3/4
 *     mostly right,    pi(right) = 3/4:  u = 3/4 * 5/6 + 1/4 * 1/6 = 2/3, x = 1/2: V = 8/15, 12/15, 14/15
 *
 * With a discount of 0.9 the coin flip's equations are V(1) = 0.45 V(2), V(3) = 0.5 + 0.45 V(2) and V(2) =
 * 0.45 (V(1) + V(3)) = 0.405 V(2) + 0.225, so V(2) = 0.225 / 0.595 = 0.3782.
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
    if (abs(next - s) != 1) return 0.0;
    return (next > s) == (a == CHAIN_RIGHT) ? 1.0 - slip : slip;
}

// Documents write r(s, a). Here the pay depends on where the step ends, r(s, a, s'), and r(s, a) is its mean.
static double chain_reward(int next) { return next == CHAIN_GOAL ? 1.0 : 0.0; }

// V (5) and Q (5 x 2) of one policy: start from V = 0 and apply the Bellman equations again and again. Each
// sweep shrinks the error (by gamma, or here also because walks end), so it settles.
static void solve_chain(double* V, double (*Q)[2], const ChainPolicy* pi, double slip, double gamma) {
    for (int s = 0; s < CHAIN_STATES; s++) V[s] = Q[s][0] = Q[s][1] = 0.0;        // final states keep V = 0
    for (double change = 1.0; change > 1e-15;) {
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
}

// One trajectory from `start` until a final state (or CHAIN_MAX_STEPS, which no walk here comes near).
static void sample_trajectory(Trajectory* tau, int start, const ChainPolicy* pi, double slip, Rng* rng) {
    int s = start;
    tau->T = 0;
    tau->state[0] = s;
    while (!chain_is_final(s) && tau->T < CHAIN_MAX_STEPS) {
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
        grad[tau->state[t]] += (tau->action[t] == CHAIN_RIGHT) - pi->right[tau->state[t]];
}

static void print_chain_values(const char* name, double pi_right, double slip) {
    ChainPolicy pi = {{pi_right, pi_right, pi_right, pi_right, pi_right}};
    double V[CHAIN_STATES], Q[CHAIN_STATES][2];
    solve_chain(V, Q, &pi, slip, 1.0);
    printf("   \"%s\", pi(right) = %g\n"
           "   s     V    Q left  Q right   A left  A right\n", name, pi_right);
    for (int s = 1; s < CHAIN_GOAL; s++)
        printf("%4d %8.4f %8.4f %8.4f %8.4f %8.4f\n", s, V[s], Q[s][0], Q[s][1], Q[s][0] - V[s],
               Q[s][1] - V[s]);
    printf("\n");
}

static void print_trajectory(const Trajectory* tau, const ChainPolicy* pi, double slip) {
    double log_policy, log_dynamics, total = trajectory_logprob(&log_policy, &log_dynamics, tau, pi, slip);
    printf("3. One trajectory of \"mostly right\" from state 2; step 1 slips\n\n"
           "   t   s_t   a_t    s_t+1   pi(a|s)  p(s'|s,a)   r_t\n");
    for (int t = 0; t < tau->T; t++) {
        int s = tau->state[t], a = tau->action[t], next = tau->state[t + 1];
        printf("%4d %5d   %-5s %6d  %8.4f  %9.4f %5.0f\n", t, s, a == CHAIN_RIGHT ? "right" : "left", next,
               chain_policy(pi, s, a), chain_dynamics(slip, s, a, next), tau->reward[t]);
    }
    printf("   product            %12.4f  %9.4f    p(tau) = %.6f\n"
           "   sum of logs (nats) %12.4f  %9.4f    log p(tau) = %.4f\n"
           "   return: %.4f with gamma = 1, %.4f with gamma = 0.9 (0.9^3)\n\n",
           exp(log_policy), exp(log_dynamics), exp(total), log_policy, log_dynamics, total,
           discounted_return(tau->reward, tau->T, 1.0), discounted_return(tau->reward, tau->T, 0.9));
}

// The derivatives by theta_1, theta_2, theta_3, as central differences: of log p(tau), or of V(2) in the
// solved Bellman equations when tau is NULL.
static void print_differences(const char* name, const Trajectory* tau, const double* theta, double slip) {
    const double h = 1e-5;
    printf("   %-32s", name);
    for (int s = 1; s < CHAIN_GOAL; s++) {
        double side[2], V[CHAIN_STATES], Q[CHAIN_STATES][2], a, b;
        for (int up = 0; up < 2; up++) {
            ChainPolicy pi = chain_policy_from(theta);
            pi.right[s] = sigmoid(theta[s] + (up ? h : -h));
            solve_chain(V, Q, &pi, slip, 1.0);
            side[up] = tau ? trajectory_logprob(&a, &b, tau, &pi, slip) : V[2];
        }
        printf(" %12.4f", (side[1] - side[0]) / (2 * h));
    }
    printf("\n");
}

// What the score needs of the world (nothing), and what that buys: E[ G d log p(tau) ] from walks alone.
static void print_gradients(const Trajectory* tau, const double* theta, double slip, Rng* rng) {
    enum { WALKS = 40000 };
    double score[CHAIN_STATES], sampled[CHAIN_STATES] = {0};
    ChainPolicy pi = chain_policy_from(theta);
    printf("4. Two gradients, and what they need of the world\n\n"
           "                                      d/d theta_1  d/d theta_2  d/d theta_3\n");
    print_differences("log p(tau), one step in 6 slips", tau, theta, slip);
    print_differences("log p(tau), 3 in 10 slip", tau, theta, 0.3);
    score_trajectory(score, tau, &pi);
    printf("   %-32s %12.4f %12.4f %12.4f\n", "formula: sum of d log pi", score[1], score[2], score[3]);
    print_differences("J = V(2), Bellman with p(s'|s,a)", NULL, theta, slip);
    for (int i = 0; i < WALKS; i++) {
        Trajectory walk;
        sample_trajectory(&walk, 2, &pi, slip, rng);
        score_trajectory(score, &walk, &pi);
        double G = discounted_return(walk.reward, walk.T, 1.0);
        for (int s = 1; s < CHAIN_GOAL; s++) sampled[s] += G * score[s] / WALKS;
    }
    printf("   %-32s %12.4f %12.4f %12.4f\n\n"
           "   By hand: states 2 and 3 are visited twice and go right: 2 (1 - 3/4) = 1/2.\n"
           "   The world changes log p(tau), and not its gradient. The last line, the mean\n"
           "   over %d walks, meets the one above it and knows nothing of the world.\n\n",
           "sampled: G d log p(tau)", sampled[1], sampled[2], sampled[3], WALKS);
}

static void lesson_1(int more) {
    const double slip = 1.0 / 6.0, logit = log(3.0);               // sigmoid(ln 3) = 3/4
    const double theta[CHAIN_STATES] = {logit, logit, logit, logit, logit};
    const Trajectory tau = {4, {2, 3, 2, 3, 4},
                            {CHAIN_RIGHT, CHAIN_RIGHT, CHAIN_RIGHT, CHAIN_RIGHT}, {0.0, 0.0, 0.0, 1.0}};
    const ChainPolicy pi = chain_policy_from(theta), coin = {{0.5, 0.5, 0.5, 0.5, 0.5}};
    const double ones[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    double V[CHAIN_STATES], Q[CHAIN_STATES][2];
    Rng rng = {1};
    (void)more;
    printf("LESSON 1. The language of reinforcement learning (D3 section 1)\n\n"
           "   Question  What exactly is optimized when something learns from reward?\n"
           "   Formula   J(pi) = E[G],   G = r_0 + gamma r_1 + gamma^2 r_2 + ...\n"
           "             A(s,a) = Q(s,a) - V(s),   dJ/d theta = E[G d log p(tau)/d theta]\n"
           "   Symbols   state s, action a, reward r, discount gamma; pi(a|s) the policy,\n"
           "             theta its parameters; p(s'|s,a) where an action leads; tau a\n"
           "             trajectory, G its return, E the mean over trajectories of pi. V(s):\n"
           "             mean return from s on; Q(s,a): the same after doing a first\n\n"
           "   World     [0] <-> 1 <-> 2 <-> 3 <-> [4]    0 and 4 end it, entering 4 pays 1.\n"
           "             One step in six (a die shows 6) slips and goes the other way.\n\n"
           "1. Two policies, gamma = 1, by the Bellman equations\n\n");
    print_chain_values("coin flip", 0.5, slip);
    print_chain_values("mostly right", 0.75, slip);
    printf("   By hand, state 2 of the second: Q right = 5/6 * 14/15 + 1/6 * 8/15 = 13/15,\n"
           "   V = 3/4 * 13/15 + 1/4 * 9/15 = 4/5, A right = 13/15 - 4/5 = 1/15 = 0.0667.\n"
           "   The mean of A under pi is 0: 3/4 * 1/15 - 1/4 * 1/5 = 0.\n\n");
    solve_chain(V, Q, &coin, slip, 0.9);
    printf("2. Discounting with gamma = 0.9\n\n"
           "   the coin flip's V(2)          %8.4f   0.225 / 0.595\n"
           "   1 per step, over 10 steps     %8.4f   (1 - 0.9^10) / (1 - 0.9)\n\n",
           V[2], discounted_return(ones, 10, 0.9));
    print_trajectory(&tau, &pi, slip);
    print_gradients(&tau, theta, slip, &rng);
    printf("Take away: J is a mean over what pi itself does, not one lucky trajectory. Its\n"
           "gradient needs returns and log pi. It never needs p(s'|s,a).\n");
}

/* ==========================================================================================================
 * CHAPTER 2. Two warm-ups: the thermostat and CartPole                                         (D3 section 2)
 *
 * Question: does the gradient of chapter 1 really teach anything? Two worlds that move, one algorithm.
 *
 * REINFORCE, as run here. Play a group of K episodes, then move the parameters w of the policy uphill:
 *
 *     w += rate * mean over all steps t of   A_t * d log pi(a_t | s_t) / d w
 *
 * A_t says how much better the step turned out than expected. Both policies choose between two actions with a
 * sigmoid, pi(1 | s) = sigmoid(w . f(s)), where f(s) are a few numbers that describe the state: the
 * derivative is (a - pi(1 | s)) f(s), what was done minus what was expected.
 *
 * The thermostat. The state is the room's temperature, the actions are heater off and on, the reward is 1
 * within 2 F of 70 F and 0 elsewhere. The hand-written policy of the document is pi(on | s) = 1 if s < 70,
 * else 0; the learned one is the same step made soft, pi(on | s) = sigmoid(w_0 + w_1 (s - 70) / 2). The room
 * obeys Newton's law of cooling: per step it loses 3% of its distance to the 40 F outside, and a heater that
 * is on adds 2.4 F. Nobody tells the agent these numbers. At 70 F that is -0.03 * 30 = -0.9 F per step with
 * the heater off and -0.9 + 2.4 = +1.5 F with the heater on. A step is five minutes, an episode a day.
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
 * The first step by hand, from rest, upright, pushed to the right (F = 10; the pole tips to the left):
 *     alpha = 10 / 1.1 = 100/11 = 9.0909
 *     theta_acc = -(100/11) / (0.5 (4/3 - 0.1/1.1)) = -(100/11) / (41/66) = -600/41 = -14.634
 *     x_acc = 100/11 + 0.05 (600/41) / 1.1 = 9.0909 + 0.6652 = 400/41 = 9.7561
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
 *   (2) A learned value function and generalized advantage estimation (GAE, below): a number for every step.
 *
 * D3 says that (1) works for language models and does not work on CartPole. `./rl cartpole` runs both and
 * prints what happens, docs/recipes/cartpole-grid.sh does it for several seeds and rates. In theory (1)
 * climbs the same hill: a baseline (what is subtracted from the return) that does not look at the action
 * leaves the mean of the gradient as it is (chapters 4 and 7). What a value function can change is the noise,
 * and with it the number of episodes needed.
 *
 * Traps. Cutting off is not falling: after 500 steps the future is missing from the record, not empty; the
 * value function fills it in. V is fitted to the returns of the last policies, so it is always a little
 * behind; D3 says the same of PPO. And "solved" for one seed says little about the next.
 * ======================================================================================================== */
// ---- the one plot of this book: letters, for any terminal -------------------------------------------------
//
// Each series is drawn with the first letter of its name (A to F when that is taken), '*' where two meet. A
// column shows the mean of the points that fall into it; an empty one lies between its neighbours.
enum { PLOT_SERIES = 6, PLOT_PARTS = 4, PLOT_WIDTH = 15 * PLOT_PARTS + 1, PLOT_HEIGHT = 3 * PLOT_PARTS + 1 };

typedef struct {
    const char *title, *x_name;
    const double* y[PLOT_SERIES];   // (points) each, at x = 1, 2, 3, ...; what is not finite is left out
    const char* names[PLOT_SERIES];
    int series, points;
    int scaled;                     // 1 = each from its own min to its own max: for different units
    int log_x;
} Plot;

typedef struct { double low, high; } Range;

// The tightest range around r of PLOT_PARTS steps that are round numbers times a power of ten.
static Range round_range(Range r) {
    static const double steps[] = {1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0};
    double width = r.high > r.low ? r.high - r.low : fmax(fabs(r.high), 1.0);
    double unit = pow(10.0, floor(log10(width / PLOT_PARTS)));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        double step = steps[i] * unit, first = floor(r.low / step + 1e-9);
        if ((first + PLOT_PARTS) * step >= r.high - 1e-9 * step)
            return (Range){first * step, (first + PLOT_PARTS) * step};
    }
    return r;
}

static int plot_has(const Plot* p, int s, int i) { return fabs(p->y[s][i]) < 1e300; }  // finite differences

static char plot_letter(const Plot* p, int s) {
    int taken = !isalpha((unsigned char)p->names[s][0]);
    for (int i = 0; i < s; i++) taken |= plot_letter(p, i) == p->names[s][0];
    return taken ? (char)('A' + s) : p->names[s][0];
}

// The range of all numbers of the series from .. to - 1; low > high when there are none.
static Range plot_range(const Plot* p, int from, int to) {
    Range r = {INFINITY, -INFINITY};
    for (int s = from; s < to; s++)
        for (int i = 0; i < p->points; i++) {
            if (!plot_has(p, s, i)) continue;
            r.low = fmin(r.low, p->y[s][i]);
            r.high = fmax(r.high, p->y[s][i]);
        }
    return r;
}

// Series s, between the heights of r.
static void draw_series(char grid[PLOT_HEIGHT][PLOT_WIDTH], const Plot* p, int s, Range r) {
    double height[PLOT_WIDTH] = {0}, count[PLOT_WIDTH] = {0};
    double up = r.high > r.low ? r.high - r.low : 1.0;
    int last = -1;
    for (int i = 0; i < p->points; i++) {
        if (!plot_has(p, s, i)) continue;
        double part = p->log_x ? log(i + 1.0) / log(fmax(2, p->points)) : i / fmax(1, p->points - 1);
        int column = (int)(part * (PLOT_WIDTH - 1) + 0.5);
        count[column]++;
        height[column] += ((p->y[s][i] - r.low) / up - height[column]) / count[column];    // a running mean
    }
    for (int c = 0; c < PLOT_WIDTH; c++) {
        if (!count[c]) continue;
        double rise = last < 0 ? 0.0 : (height[c] - height[last]) / (c - last);
        for (int i = last < 0 ? c : last + 1; i <= c; i++) {
            char* cell = &grid[(int)((1.0 - height[c] + rise * (c - i)) * (PLOT_HEIGHT - 1) + 0.5)][i];
            *cell = *cell == ' ' ? plot_letter(p, s) : '*';
        }
        last = c;
    }
}

static void print_plot(const Plot* p) {
    char grid[PLOT_HEIGHT][PLOT_WIDTH];
    Range all = plot_range(p, 0, p->series);
    printf("%s\n\n", p->title);
    if (all.low > all.high) {
        printf("  (there is nothing to draw)\n");
        return;
    }
    all = round_range(all);
    memset(grid, ' ', sizeof grid);
    for (int s = 0; s < p->series; s++)
        draw_series(grid, p, s, p->scaled ? plot_range(p, s, s + 1) : all);
    for (int row = 0; row < PLOT_HEIGHT; row++) {
        double v = all.high - (all.high - all.low) * row / (PLOT_HEIGHT - 1);
        int end = PLOT_WIDTH;
        while (end && grid[row][end - 1] == ' ') end--;
        if (fabs(v) < 1e-9 * (all.high - all.low)) v = 0.0;                  // a rounding error of 0
        if (p->scaled) printf("%7s", row == 0 ? "max" : row == PLOT_HEIGHT - 1 ? "min" : "");
        else if (row % 3) printf("%7s", "");
        else printf("%7.4g", v);
        printf(" |%.*s\n", end, grid[row]);
    }
    printf("%9s+--------------+--------------+--------------+--------------+\n%9s", "", "");
    for (int i = 0; i <= (p->points > 1 ? PLOT_PARTS : 0); i++) {
        double part = (double)i / PLOT_PARTS, v = 1.0 + (p->points - 1) * part;
        if (p->points > 20) v = floor(v + 0.5);
        printf(i < PLOT_PARTS ? "%-15.4g" : "%.4g", p->log_x ? pow(p->points, part) : v);
    }
    printf("\n%9s%s\n", "", p->x_name);
    for (int s = 0; s < p->series; s++) {
        Range own = plot_range(p, s, s + 1);
        printf("\n  %c  %s", plot_letter(p, s), p->names[s]);
        printf(own.low <= own.high ? ": %.4g to %.4g" : ": no numbers", own.low, own.high);
    }
    printf(p->series > 1 ? "\n  *  more than one of them\n" : "\n");
}

static double inner_product(const double* a, const double* b, int n) {
    double sum = 0.0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

// gradient (n) = mean over N steps of A_t d log pi(a_t | s_t) / d w; f (N,n) features, action and A (N). A is
// divided by its root mean square, or by `least` if that is larger: one learning rate then means the same
// wherever A comes from.
static void reinforce_gradient(double* gradient, const double* f, const int* action, const double* A, int N,
                               const double* w, int n, double least) {
    double square = 0.0;
    for (int i = 0; i < N; i++) square += A[i] * A[i] / N;
    for (int j = 0; j < n; j++) gradient[j] = 0.0;
    for (int i = 0; i < N; i++) {
        double surprise = action[i] - sigmoid(inner_product(w, f + i * n, n));
        double weight = A[i] / fmax(sqrt(square), least) * surprise;
        for (int j = 0; j < n; j++) gradient[j] += weight * f[i * n + j] / N;
    }
}

// ---- the thermostat

static const double thermostat_target = 70.0, thermostat_band = 2.0;                     // F
static const double thermostat_outside = 40.0;                                           // F
static const double thermostat_loss = 0.03, thermostat_heat = 2.4;                       // 1/step, F/step

// An episode is a day; a group of days makes one gradient step. A switch matters for the next few steps only:
// gamma 0.8 looks 1 / (1 - 0.8) = 5 of them ahead.
enum { THERMOSTAT_STEPS = 288, THERMOSTAT_GROUP = 8, THERMOSTAT_UPDATES = 64 };
static const double thermostat_gamma = 0.8, thermostat_learning_rate = 3.0;

// What one step changes, in F: loss to the outside, plus heat when the heater is on.
static double thermostat_rate(double temperature, int on) {
    return (on ? thermostat_heat : 0.0) - thermostat_loss * (temperature - thermostat_outside);
}

static int thermostat_in_band(double now) { return fabs(now - thermostat_target) <= thermostat_band; }

// One day under sigmoid(w . f), starting anywhere from 60 to 80 F: the temperature each action saw (288), its
// features f (288,2), the action, the reward of where it led. Returns the share of the day in the band.
static double simulate_day(double* temperature, double* f, int* action, double* reward, const double* w,
                           Rng* rng) {
    double now = 60.0 + 20.0 * random_uniform(rng), share = 0.0;
    for (int t = 0; t < THERMOSTAT_STEPS; t++) {
        temperature[t] = now;
        f[2 * t] = 1.0;
        f[2 * t + 1] = (now - thermostat_target) / thermostat_band;
        action[t] = random_uniform(rng) < sigmoid(inner_product(w, f + 2 * t, 2));
        now += thermostat_rate(now, action[t]);
        reward[t] = thermostat_in_band(now);
        share += reward[t] / THERMOSTAT_STEPS;
    }
    return share;
}

// REINFORCE with the return from step t on (the "reward-to-go") minus the mean of all of them. w (2) starts
// at 0, random switching. share (updates): the part of time in the band during each update's episodes.
static void train_thermostat(double* w, double* share, uint64_t seed) {
    enum { T = THERMOSTAT_STEPS, N = THERMOSTAT_GROUP * T };
    double temperature[T], f[2 * N], reward[N], A[N], gradient[2];
    int action[N];
    Rng rng = {seed};
    w[0] = w[1] = 0.0;
    for (int update = 0; update < THERMOSTAT_UPDATES; update++) {
        double mean = 0.0;
        share[update] = 0.0;
        for (int i = 0; i < N; i += T)
            share[update] += simulate_day(temperature, f + 2 * i, action + i, reward + i, w, &rng) * T / N;
        for (int i = N - 1; i >= 0; i--) {
            double later = (i + 1) % T ? A[i + 1] : 0.0;           // nothing comes after the day's last step
            A[i] = reward[i] + thermostat_gamma * later;           // G_t = r_t + gamma G_{t+1}
            mean += A[i] / N;
        }
        for (int i = 0; i < N; i++) A[i] -= mean;
        reinforce_gradient(gradient, f, action, A, N, w, 2, 1e-8);
        for (int j = 0; j < 2; j++) w[j] += thermostat_learning_rate * gradient[j];
    }
}

// Share of time in the band over `days` fresh days, and the last day's temperatures for a drawing.
static double test_thermostat(double* temperature, const double* w, int days, Rng* rng) {
    double f[2 * THERMOSTAT_STEPS], reward[THERMOSTAT_STEPS], share = 0.0;
    int action[THERMOSTAT_STEPS];
    for (int day = 0; day < days; day++) share += simulate_day(temperature, f, action, reward, w, rng) / days;
    return share;
}

// ---- CartPole: the world

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

// One step of 0.02 s; action 1 pushes right, 0 left. 1 = the pole stands and the cart is on its track.
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
    double u[4];
    for (int i = 0; i < 4; i++) u[i] = 0.1 * random_uniform(rng) - 0.05;
    return (CartPole){u[0], u[1], u[2], u[3]};
}

// The state in units of its limits (a speed of 2 is a typical high one): one step size suits them all.
static void cartpole_features(double* f, const CartPole* c) {
    f[0] = 1.0;
    f[1] = c->x / x_limit;
    f[2] = c->x_dot / 2.0;
    f[3] = c->theta / theta_limit;
    f[4] = c->theta_dot / 2.0;
}

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
// wrong); lambda = 1 gives return minus V(s_t) (no bias, all the noise).
void advantages_gae(float* adv, const float* reward, const float* value, int T, float gamma, float lambda) {
    double next_advantage = 0.0, next_value = 0.0;
    for (int t = T - 1; t >= 0; t--) {
        double delta = reward[t] + gamma * next_value - value[t];
        next_advantage = delta + (double)gamma * lambda * next_advantage;
        next_value = value[t];
        adv[t] = (float)next_advantage;
    }
}

enum { BASELINE_GROUP_MEAN, BASELINE_VALUE, BASELINES };
static const char* const baseline_names[BASELINES] = {"group mean", "value + GAE"};

// The learning rates of policy and V; gamma and lambda of V and GAE (the group mean does not discount).
enum { CARTPOLE_BUDGET = 200000 };                                  // environment steps to learn from
static const double cartpole_learning_rate = 30.0, cartpole_value_rate = 0.02;
static const double cartpole_gamma = 0.99, cartpole_lambda = 0.95;

// The episodes of one group, laid end to end: episode k is the steps first[k] ... first[k + 1] - 1.
typedef struct {
    int first[CARTPOLE_GROUP + 1];
    int action[CARTPOLE_GROUP * CARTPOLE_CAP];
    double features[CARTPOLE_GROUP * CARTPOLE_CAP][POLICY_SIZE];
    double advantage[CARTPOLE_GROUP * CARTPOLE_CAP];
    double last[CARTPOLE_GROUP][POLICY_SIZE];        // features of the state after the last step
    int cut_off[CARTPOLE_GROUP];                     // 1 = reached the cap standing, 0 = fell
} CartPoleGroup;

// Episode k of the group, from `c` under sigmoid(w . f); returns its length.
static int run_cartpole_episode(CartPoleGroup* group, int k, CartPole c, const double* w, Rng* rng) {
    int first = group->first[k], i = first, standing = 1;
    for (; standing && i - first < CARTPOLE_CAP; i++) {
        cartpole_features(group->features[i], &c);
        group->action[i] = random_uniform(rng) < sigmoid(inner_product(w, group->features[i], POLICY_SIZE));
        standing = step_cartpole(&c, group->action[i]);
    }
    group->first[k + 1] = i;
    group->cut_off[k] = standing;
    cartpole_features(group->last[k], &c);
    return i - first;
}

// K episodes from one common start. Returns their mean length.
static double collect_group(CartPoleGroup* group, const double* w, Rng* rng) {
    CartPole start = start_cartpole(rng);
    group->first[0] = 0;
    for (int k = 0; k < CARTPOLE_GROUP; k++) run_cartpole_episode(group, k, start, w, rng);
    return (double)group->first[CARTPOLE_GROUP] / CARTPOLE_GROUP;
}

// A_t of every step. Group mean: length of the episode minus the mean length. Value: GAE, episode by episode.
static void fill_advantages(CartPoleGroup* group, const double* v, int baseline) {
    double mean_length = (double)group->first[CARTPOLE_GROUP] / CARTPOLE_GROUP;
    for (int k = 0; k < CARTPOLE_GROUP; k++) {
        int first = group->first[k], T = group->first[k + 1] - first;
        float reward[CARTPOLE_CAP], value[CARTPOLE_CAP], adv[CARTPOLE_CAP];
        for (int t = 0; t < T; t++) {
            reward[t] = 1.0f;
            value[t] = (float)value_of(v, group->features[first + t]);
            adv[t] = (float)(T - mean_length);
        }
        if (group->cut_off[k]) reward[T - 1] += (float)(cartpole_gamma * value_of(v, group->last[k]));
        if (baseline == BASELINE_VALUE)
            advantages_gae(adv, reward, value, T, (float)cartpole_gamma, (float)cartpole_lambda);
        for (int t = 0; t < T; t++) group->advantage[first + t] = adv[t];
    }
}

// The value function walks through each episode from its end, towards the discounted return that followed.
static void fit_value(double* v, const CartPoleGroup* group) {
    for (int k = 0; k < CARTPOLE_GROUP; k++) {
        double G = group->cut_off[k] ? value_of(v, group->last[k]) : 0.0;
        for (int i = group->first[k + 1] - 1; i >= group->first[k]; i--) {
            G = 1.0 + cartpole_gamma * G;
            value_update(v, group->features[i], G, cartpole_value_rate);
        }
    }
}

typedef struct {
    double w[POLICY_SIZE], v[VALUE_SIZE];     // the policy; the value function (all 0 under the group mean)
    int updates, solved;                      // gradient steps; steps until a group averaged 475 (-1: never)
    double length[CARTPOLE_MAX_UPDATES];      // mean episode length of each update's group
} CartPoleRun;

// Learn from nothing until the budget of environment steps is spent. The root mean square of A counts as at
// least 1, the reward of one step: near the cap A is little more than the error of the value function, and
// blown up to full size it would undo what was learned.
static void train_cartpole(CartPoleRun* run, uint64_t seed, int baseline, double learning_rate) {
    CartPoleGroup* group = allocate(1, sizeof *group);
    Rng rng = {seed};
    memset(run, 0, sizeof *run);
    run->solved = -1;
    for (int steps = 0; steps < CARTPOLE_BUDGET && run->updates < CARTPOLE_MAX_UPDATES; run->updates++) {
        double gradient[POLICY_SIZE], mean_length = collect_group(group, run->w, &rng);
        int n = group->first[CARTPOLE_GROUP];
        fill_advantages(group, run->v, baseline);
        reinforce_gradient(gradient, group->features[0], group->action, group->advantage, n, run->w,
                           POLICY_SIZE, 1.0);
        for (int j = 0; j < POLICY_SIZE; j++) run->w[j] += learning_rate * gradient[j];
        if (baseline == BASELINE_VALUE) fit_value(run->v, group);
        steps += n;
        if (run->solved < 0 && mean_length >= 0.95 * CARTPOLE_CAP) run->solved = steps;
        run->length[run->updates] = mean_length;
    }
    free(group);
}

// Mean length of `episodes` fresh episodes of the policy as it is, sampling included.
static double test_cartpole(const double* w, int episodes, Rng* rng) {
    CartPoleGroup* group = allocate(1, sizeof *group);
    double sum = 0.0;
    for (int i = 0; i < episodes; i++) sum += run_cartpole_episode(group, 0, start_cartpole(rng), w, rng);
    free(group);
    return sum / episodes;
}

static void print_thermostat_rates(void) {
    printf("Thermostat. Outside %g F; a step loses %g%% of the distance to it, heat adds %g.\n"
           "   At 70 F a step changes %.1f F with the heater off, -0.03 (70 - 40), and %.1f F\n"
           "   with the heater on. The reward is 1 from 68 to 72 F, else 0.\n\n",
           thermostat_outside, 100 * thermostat_loss, thermostat_heat, thermostat_rate(70.0, 0),
           thermostat_rate(70.0, 1));
}

static void print_thermostat_policies(const double* w, Rng* rng) {
    const double policy[3][2] = {{0.0, 0.0}, {0.0, -1000.0}, {w[0], w[1]}};   // -1000: "on below 70"
    double day[THERMOSTAT_STEPS], percent[3];
    for (int i = 0; i < 3; i++) percent[i] = 100 * test_thermostat(day, policy[i], 200, rng);
    printf("In the band, 200 fresh days:\n"
           "   random switching, pi(on) = 1/2               %6.2f%%\n"
           "   written by hand (D3), on below 70 F          %6.2f%%\n"
           "   learned, sigmoid(%6.3f %+7.3f (s - 70)/2)  %6.2f%%\n",
           percent[0], percent[1], w[0], w[1], percent[2]);
}

static void plot_curve(const char* title, const char* x_name, const char* name, const double* y, int points) {
    print_plot(&(Plot){.title = title, .x_name = x_name, .y = {y}, .names = {name}, .series = 1,
                       .points = points});
}

static void run_thermostat(uint64_t seed) {
    double w[2], share[THERMOSTAT_UPDATES], day[THERMOSTAT_STEPS];
    Rng rng = {seed + 1000};
    print_thermostat_rates();
    train_thermostat(w, share, seed);
    printf("REINFORCE, %d updates of %d days each.\n", THERMOSTAT_UPDATES, THERMOSTAT_GROUP);
    plot_curve("Share of the time within 2 F of 70 F", "update", "share", share, THERMOSTAT_UPDATES);
    test_thermostat(day, w, 1, &rng);
    printf("\n");
    plot_curve("A fresh day, in steps of five minutes", "step", "temperature, F", day, THERMOSTAT_STEPS);
    printf("\n");
    print_thermostat_policies(w, &rng);
}

static void run_cartpole(uint64_t seed, float learning_rate) {
    for (int b = 0; b < BASELINES; b++) {
        CartPoleRun run;
        Rng rng = {seed + 1000};
        train_cartpole(&run, seed, b, learning_rate);
        printf("CartPole, REINFORCE with %s, seed %llu, rate %g, %d environment steps.\n", baseline_names[b],
               (unsigned long long)seed, learning_rate, CARTPOLE_BUDGET);
        plot_curve("Mean length of an episode", "update", "length", run.length, run.updates);
        printf("   pi(right) = sigmoid(%.2f %+.2f x %+.2f x_dot %+.2f theta %+.2f theta_dot)\n", run.w[0],
               run.w[1] / x_limit, run.w[2] / 2.0, run.w[3] / theta_limit, run.w[4] / 2.0);
        if (run.solved >= 0) printf("   %-12s solved after %6d steps", baseline_names[b], run.solved);
        else printf("   %-12s not solved in %6d steps", baseline_names[b], CARTPOLE_BUDGET);
        printf("; 100 new episodes: %5.1f of %d\n\n", test_cartpole(run.w, 100, &rng), CARTPOLE_CAP);
    }
    printf("Solved: a group of %d episodes averages %.0f of %d or more. One seed says little:\n"
           "docs/recipes/cartpole-grid.sh takes 9 seeds and 4 rates.\n", CARTPOLE_GROUP, 0.95 * CARTPOLE_CAP,
           CARTPOLE_CAP);
}

static void print_cartpole_step(void) {
    CartPole c = {0.0, 0.0, 0.0, 0.0};
    CartPoleForces a = cartpole_forces(&c, push_force);
    step_cartpole(&c, 1);
    printf("CartPole: a cart at x, its pole at the angle theta (0 is upright). The first\n"
           "step from rest, pushed to the right:\n"
           "   alpha     %9.4f   10 / 1.1\n"
           "   theta_acc %9.4f   -600 / 41, and theta_dot %8.5f = -0.02 * 600 / 41\n"
           "   x_acc     %9.4f    400 / 41, and x_dot     %8.5f =  0.02 * 400 / 41\n\n",
           a.alpha, a.theta_acc, c.theta_dot, a.x_acc, c.x_dot);
}

static void print_cartpole_lengths(void) {
    CartPoleRun run = {0};                                          // w = 0: a coin flip
    Rng rng = {2};
    printf("Mean length of an episode: coin flip                      %7.1f\n",
           test_cartpole(run.w, 1000, &rng));
    for (int b = 0; b < BASELINES; b++) {
        train_cartpole(&run, 1, b, cartpole_learning_rate);
        printf("   after %6d steps of REINFORCE, %-12s            %7.1f\n", CARTPOLE_BUDGET,
               baseline_names[b], test_cartpole(run.w, 100, &rng));
    }
}

static void lesson_2(int more) {
    double w[2], share[THERMOSTAT_UPDATES];
    Rng rng = {1};
    (void)more;
    printf("LESSON 2. Two warm-ups: the thermostat and CartPole (D3 section 2)\n\n"
           "   Question  Does the gradient of lesson 1 really teach anything?\n"
           "   Formula   w += rate * mean over t of A_t d log pi(a_t|s_t)/dw,\n"
           "             pi(1|s) = sigmoid(w . f(s)),  d log pi(a|s)/dw = (a - pi(1|s)) f(s)\n"
           "   Symbols   s, a (0 or 1), A_t of step t as in lesson 1; w the parameters, f(s)\n"
           "             numbers that describe s; sigma or sigmoid(z) = 1/(1 + e^-z)\n\n");
    print_thermostat_rates();
    train_thermostat(w, share, 1);
    printf("REINFORCE, %d updates of %d days each. ", THERMOSTAT_UPDATES, THERMOSTAT_GROUP);
    print_thermostat_policies(w, &rng);
    printf("\n");
    print_cartpole_step();
    print_cartpole_lengths();
    printf("\nTake away: nobody told the policies the rates and formulas above; they found out\n"
           "by trying. ./rl thermostat and ./rl cartpole draw the learning curves.\n");
}

/* ==========================================================================================================
 * CHAPTER 3. The language model as policy                                        (D3 section 3, experiment 1)
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
 * prompt given it loses rho_0 too. What remains can be computed exactly:
 *
 *     pi(y | x) = product over t of pi(y_t | x, y_<t)
 *     log pi(y | x) = sum over t of log pi(y_t | x, y_<t)
 *
 * Always in logs: 150 factors of 1/2 are 0 in float, 1075 in double. From logits z to the log-probability of
 * one token i:
 *
 *     log pi(i) = z_i - log(sum over j of exp(z_j))
 *               = z_i - (m + log(sum over j of exp(z_j - m))),       m = the largest of the z_j
 *
 * Subtracting m changes nothing on paper and everything in the machine: exp(z - m) is at most 1 and at least
 * one term IS 1, so nothing overflows and the logarithm never sees 0.
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
 * Traps, both shown in the lesson, neither with an error message. (1) No shift: z_t looked up at id_t asks
 * how likely the token is that was just read. (2) Mask not shifted: the first token of the answer drops
 * out, and the first one behind it comes in. Shapes fit, nothing crashes, the loss even falls.
 * ======================================================================================================== */

// Two functions of this chapter stand in train_gpt.c, because supervised training needs them too:
// log_sum_exp(z, V), the formula with m for one row of logits (section 4), and shift_mask() (section 12),
// (B,T) -> (B,T-1): out[b * (T - 1) + t] = mask[b * T + t + 1].

// Log-probability, in nats, of each token given the tokens before it: logp[b,t] = log pi(ids[b,t+1] |
// ids[b,0..t]). logp (B,T-1), logits (B,T,V), ids (B,T). The last row of logits is not used. T <= 1 writes
// nothing. An id outside 0 ... V-1 gives NaN at its place, not a wrong number. D3's compute_log_probs.
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
// no idea. entropy (N), logits (N,V), not shifted. N <= 0 writes nothing; p = 0 adds 0, not 0 * inf = NaN.
void token_entropy(float* entropy, const float* logits, int N, int V) {
    for (int n = 0; n < N; n++) {
        const float* z = logits + (size_t)n * (size_t)V;
        entropy[n] = row_entropy(z, log_sum_exp(z, V), V);
    }
}

// log pi(y | x) of each sequence, in nats: the sum of logp where the mask is not 0. out (B), logp and mask
// (B,T1), both already shifted. An empty mask gives 0. Masked entries are skipped: a NaN there stays there.
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

// Mean of x where the mask is not 0; 0 when the mask is empty (or n <= 0), never 0/0. x, mask (n).
double masked_mean(const float* x, const int* mask, int n) {
    double sum = 0.0;
    for (int i = 0; i < n; i++) if (mask[i]) sum += x[i];
    int count = count_masked(mask, n);
    return count ? sum / count : 0.0;
}

// The hand-made example: the prompt "2 + 2 =", the answer "4 <end>", and logits that are whole numbers. By
// hand, for the two tokens of the answer:
//     row 3, logits 1 0 0 3 0: log pi("4")     = 3 - log(e + e^3 + 3) = 3 - log 25.804 = 3 - 3.2505 = -0.2505
//     row 4, logits 0 0 0 0 2: log pi("<end>") = 2 - log(4 + e^2)     = 2 - log 11.389 = 2 - 2.4327 = -0.4327
//     log pi("4 <end>" | "2 + 2 =") = -0.2505 - 0.4327 = -0.6832, pi = exp(-0.6832) = 0.5050
// This policy looks at the place alone, so the same rows answer for any other tokens read.
enum { EXAMPLE_T = 6, EXAMPLE_V = 5, EXAMPLE_PROMPT = 4, EXAMPLE_END = 4 };

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

static void example_text(char* out, size_t cap, const int* ids, int first, int last) {
    size_t used = 0;
    out[0] = '\0';
    for (int t = first; t < last && used < cap; t++)
        used += (size_t)snprintf(out + used, cap - used, t > first ? " %s" : "%s", example_tokens[ids[t]]);
}

int answers_equal(const char* a, const char* b);   // chapter 5's verifier: the same answer? 1 or 0

// The answer's tokens in ids (EXAMPLE_T) as steps of chapter 1's MDP. The prompt is the first state; the
// verifier reads the answer once, when <end> or the longest length has completed it.
static void print_example_as_mdp(const int* ids) {
    float logp[EXAMPLE_T - 1];
    char state[32], next[32], answer[32];
    token_logprobs(logp, example_logits, ids, 1, EXAMPLE_T, EXAMPLE_V);
    for (int t = EXAMPLE_PROMPT, done = 0; !done; t++) {
        done = ids[t] == EXAMPLE_END || t == EXAMPLE_T - 1;
        example_text(answer, sizeof answer, ids, EXAMPLE_PROMPT, t + (ids[t] != EXAMPLE_END));
        example_text(state, sizeof state, ids, 0, t);
        example_text(next, sizeof next, ids, 0, t + 1);
        printf("   %-14s %-8s %8.4f  %-18s %3d   %s\n", state, example_tokens[ids[t]],
               exp((double)logp[t - 1]), next, done && answers_equal(answer, "4"), done ? "yes" : "no");
    }
    printf("\n");
}

static void print_example_as_table(const float* logp, const int* shifted) {
    printf("          logits: one row per token read, [ ] the one looked up\n t reads ");
    for (int v = 0; v < EXAMPLE_V; v++) printf("%4s ", v == EXAMPLE_END ? "<e>" : example_tokens[v]);
    printf("   LSE   about     logp  mask of it\n");
    for (int t = 0; t < EXAMPLE_T; t++) {
        const float* z = example_logits + t * EXAMPLE_V;
        int next = t + 1 < EXAMPLE_T ? example_ids[t + 1] : -1;
        printf("%2d %-6s", t, example_tokens[example_ids[t]]);
        for (int v = 0; v < EXAMPLE_V; v++) printf(v == next ? "  [%.0f]" : "   %.0f ", z[v]);
        printf("%7.4f   ", log_sum_exp(z, EXAMPLE_V));
        if (next < 0) printf("a token that does not exist yet\n");
        else printf("%-5s %8.4f %6d\n", example_tokens[next], (double)logp[t], shifted[t]);
    }
    printf("\n   By hand, row 3: LSE = log(e + e^3 + 3) = log 25.804 = 3.2505, and\n"
           "   log pi(\"4\" | 2 + 2 =) = 3 - 3.2505 = -0.2505. %d tokens, %d log-probs.\n\n", EXAMPLE_T,
           EXAMPLE_T - 1);
}

static void print_mask_line(const char* name, const float* logp, const int* mask, int n) {
    float sum;
    sequence_logprobs(&sum, logp, mask, 1, n);
    printf("   %-35s %6d %11.4f %10.4f %10.4g\n", name, count_masked(mask, n), (double)sum,
           masked_mean(logp, mask, n), exp((double)sum));
}

// The right log pi(y|x) and the usual slips. logits (T,V); ids and mask (T), not shifted; the first `prompt`
// tokens are the question.
static void print_mask_slips(const float* logits, const int* ids, const int* mask, int prompt, int T, int V) {
    size_t room = (size_t)T + 1;
    float *logp = allocate(2 * room, sizeof(float)), *late = logp + room;
    int *shifted = allocate(4 * room, sizeof(int)), *every = shifted + room, *answer = every + room;
    int* late_ids = answer + room;
    for (int t = 0; t < T; t++) {
        every[t] = 1;
        answer[t] = t >= prompt;
        late_ids[t + 1] = ids[t];                                  // one place later: that undoes the shift
    }
    token_logprobs(logp, logits, ids, 1, T, V);
    token_logprobs(late, logits, late_ids, 1, T + 1, V);
    shift_mask(shifted, mask, 1, T);
    shift_mask(answer, answer, 1, T);
    printf("   %-35s %6s %11s %10s %10s\n", "", "tokens", "sum, nats", "per token", "exp(sum)");
    print_mask_line("right: ids and mask shifted", logp, shifted, T - 1);
    print_mask_line("without the mask: prompt counted", logp, every, T - 1);
    print_mask_line("mask not shifted: the wrong tokens", logp, mask, T - 1);
    print_mask_line("ids not shifted: row t asks about t", late, mask, T);
    if (count_masked(answer, T - 1) > count_masked(shifted, T - 1))
        print_mask_line("forced tokens counted as chosen", logp, answer, T - 1);
    free(logp), free(shifted);
}

static void lesson_3(int more) {
    const int wrong_ids[EXAMPLE_T] = {0, 1, 0, 2, 0, 4};           // 2 + 2 = 2 <end>
    float logp[EXAMPLE_T - 1];
    int shifted[EXAMPLE_T - 1];
    (void)more;
    token_logprobs(logp, example_logits, example_ids, 1, EXAMPLE_T, EXAMPLE_V);
    shift_mask(shifted, example_mask, 1, EXAMPLE_T);
    printf("LESSON 3. The language model as policy (D3 section 3)\n\n"
           "   Question  Where are state, action and policy in a language model?\n"
           "   Formula   log pi(y|x) = sum over t of log pi(y_t | x, y_<t)\n"
           "             log pi(i) = z_i - LSE,   LSE = log(sum over j of e^(z_j))\n"
           "   Symbols   x the prompt, y the answer, y_t its token t, y_<t those before it;\n"
           "             z_i the logit of token i; log is natural, its unit the nat\n\n"
           "1. Two answers to \"2 + 2 =\" as an MDP: one right, one wrong\n\n"
           "   state s_t      action   pi(a|s)  next state s_t+1     r   done\n");
    print_example_as_mdp(example_ids);
    print_example_as_mdp(wrong_ids);
    printf("   The transition appends the token: no chance in it. The verifier reads the\n"
           "   answer once, at the end: r is 1 for 4, and 0 for 2.\n\n"
           "2. From logits to token log-probs: row t is about token t+1\n\n");
    print_example_as_table(logp, shifted);
    printf("3. The answer's log-prob, and the usual slips\n\n");
    print_mask_slips(example_logits, example_ids, example_mask, EXAMPLE_PROMPT, EXAMPLE_T, EXAMPLE_V);
    printf("\n   By hand, the first line: -0.2505 - 0.4327 = -0.6832; half of it per token.\n"
           "   Every line has a number, nothing crashes, and one line is right.\n\n");
    printf("4. How big is this MDP? 4000 steps of 128000 tokens are 10^%.1f sequences,\n"
           "   500 steps of CartPole 10^%.1f. By hand: 4000 log10(128000) = 4000 * 5.1072.\n"
           "   Learnable thanks to pretraining: few sequences have nearly all probability.\n\n",
           4000 * log10(128000), 500 * log10(2));
    printf("Take away: logits[t] is about token t+1, and the mask moves with it.\n");
}

// ---- experiment 1 of D3: the decomposition and the mask, on a real model (`./rl experiment 1`)

// The logits of every position, (T,V), as D3's first lines compute them. free() them.
static float* all_logits(Model* m, const int* ids, int T) {
    Batch b = {0};
    int* targets = allocate((size_t)T, sizeof(int)); // all 0: every position is asked, about anything
    size_t n = (size_t)T * m->config.vocab_size;
    float* logits = allocate(n, sizeof(float));
    batch_add(&b, ids, targets, T, -1);
    model_forward(m, &b);
    memcpy(logits, m->acts.logits, n * sizeof(float));
    batch_free(&b), free(targets);
    return logits;
}

// text is a question (its first `prompt` tokens) and an answer. D3: "confirm log pi(y|x) = sum over t of
// log pi(y_t | x, y_<t) with your own hands, and watch what a wrong mask does". The sum in two ways: from one
// pass over the whole text, and from a pass for each token over what came before it.
static void experiment_1(Model* m, const Tokens* text, int prompt) {
    int T = text->length, V = m->config.vocab_size;
    float *logits = all_logits(m, text->ids, T), *logp = allocate((size_t)T, sizeof(float));
    double at_once = 0.0, one_by_one = 0.0;
    token_logprobs(logp, logits, text->ids, 1, T, V);
    for (int t = prompt; t < T; t++) {
        if (!text->mask[t]) continue;
        float* before = all_logits(m, text->ids, t);
        const float* z = before + (size_t)(t - 1) * (size_t)V;     // the last row is about token t
        at_once += logp[t - 1];
        one_by_one += z[text->ids[t]] - log_sum_exp(z, V);
        free(before);
    }
    printf("1. log pi(y|x) = sum over t of log pi(y_t | x, y_<t), a term per token of mask 1\n\n"
           "   one pass over the whole text, logits shifted against ids  %12.4f nats\n"
           "   a pass for each token, over what came before it           %12.4f nats\n\n"
           "   One pass is enough: attention is causal, no token sees what comes after it.\n\n"
           "2. The mask: %d tokens of prompt, %d of answer, %d of them with mask 1\n\n",
           at_once, one_by_one, prompt, T - prompt, count_masked(text->mask, T));
    print_mask_slips(logits, text->ids, text->mask, prompt, T, V);
    printf("\nTake away: the log-probability of an answer is a sum over its sampled tokens.\n"
           "Neither the question nor what a tool wrote belongs to it. Answers of different\n"
           "length compare by the mean per token, two models (DPO) by their ratio.\n");
    free(logits), free(logp);
}

/* ==========================================================================================================
 * CHAPTER 4. Why it is a bandit                                                                (D3 section 4)
 *
 * The question. Chapter 3 called every token an action. People who train language models say that the
 * whole answer is one action. Who is right, and does it matter for the gradient?
 *
 * The idea. Three things that make reinforcement learning hard are missing here.
 *   1. The reward is a function that we bring along: a learned reward model r_phi(x, y) in RLHF, a
 *      checking program in RLVR (chapter 5). It is no longer a fixed property of the world.
 *   2. There is no world that answers back. x is drawn from a data set D, y is written, the episode is over,
 *      and y has no influence on the next x. Inside the answer the state does move, but we know that move
 *      exactly: it appends the token that was chosen.
 *   3. The reward is one number for the whole answer, and it is not discounted: gamma = 1.
 * One situation, one choice, one payment: that is a slot machine with very many arms, a bandit. Because the
 * situation x differs from round to round it is called a contextual bandit. The objective shrinks to
 *
 *     J(theta) = E over x ~ D, y ~ pi_theta(.|x) of [ r(x, y) ]
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
 * change is the variance. (How the number is shared out over the tokens is called credit assignment.)
 *
 * How we make sure. A language model with three tokens and answers of three tokens has only 3^3 = 27 answers:
 * an expectation is a sum that we can do completely, without noise. Chapters 8 and 9 measure with it too.
 *
 * Where D3 needs care.
 *   - 0.99^500 = exp(500 ln 0.99) = exp(-5.0252) = 0.0066, which is 0.66%; D3 cuts it to 0.6%.
 *   - "The two views are equivalent" is true of the expected gradient, not of its variance: a value function
 *     still lowers the noise. The lesson shows by how much.
 *   - Why gamma < 1 is a bias: common code gives token t the weight gamma^(steps to the end) and leaves out
 *     the factor gamma^t that the gradient of a discounted return has. With that factor and equal lengths
 *     only the size of the gradient changes. With unequal lengths, gamma < 1 pays for short answers.
 * ======================================================================================================== */

// ---- the toy: a language model small enough to write out ---------------------------------------------
//
// The tokens are the digits 0, 1, 2. The task, which a program verifies: "write three digits whose sum is 3".
// The policy has one row of three logits per prefix: 1 empty prefix, 3 prefixes of one token, 9 of two, so
// 13 states and 39 parameters: it can represent every distribution over the 27 answers.
//
// Numbering. Entry e = 3*state + token is one (state, action) pair, and the state that follows it is e + 1:
//     state 0 = ""   --token 0--> state 1 = "0"   --token 2--> state 6 = "02"   --token 1--> answer "021"
// The 27 entries 12..38 end an answer. Answer y is entry 12 + y, and y in base 3 is the answer's digits.
enum { TOY_V = 3, TOY_T = 3, TOY_STATES = 13, TOY_PARAMS = 39, TOY_ANSWERS = 27, TOY_LAST = 12 };

// Logits that look irregular but are the same everywhere.
static void toy_fill(double* theta, int n, int k, double scale) {
    for (int i = 0; i < n; i++) theta[i] = scale * sin(0.7 * (i + 1) + 1.3 * k);
}

// Log-softmax of one row of n logits, in double precision: logp[j] = logits[j] - log sum_k exp(logits[k]).
static void toy_log_softmax(double* logp, const double* logits, int n) {
    double largest = logits[0], sum = 0.0;
    for (int j = 1; j < n; j++) largest = fmax(largest, logits[j]);
    for (int j = 0; j < n; j++) sum += exp(logits[j] - largest);
    for (int j = 0; j < n; j++) logp[j] = logits[j] - largest - log(sum);
}

// (39) logits -> (39) log-probabilities, log pi(token | prefix), one softmax per prefix.
static void toy_log_policy(double* logp, const double* theta) {
    for (int s = 0; s < TOY_STATES; s++) toy_log_softmax(logp + s * TOY_V, theta + s * TOY_V, TOY_V);
}

// The three entries that answer y passes through, found backwards from its last one.
static void toy_path(int* path, int y) {
    path[TOY_T - 1] = TOY_LAST + y;
    for (int t = TOY_T - 1; t > 0; t--) path[t - 1] = path[t] / TOY_V - 1;   // it led to the state of path[t]
}

// Sum of the values that a table of 39 entries holds along answer y. For logp that is log pi(y).
static double toy_sum_along(const double* table, int y) {
    int path[TOY_T];
    double sum = 0.0;
    toy_path(path, y);
    for (int t = 0; t < TOY_T; t++) sum += table[path[t]];
    return sum;
}

// The verifier: 1 when the digits of answer y add up to 3, otherwise 0. Seven of the 27 answers pass.
static double toy_verify(int y) { return y / 9 + y / 3 % 3 + y % 3 == 3 ? 1.0 : 0.0; }

// The reward as the token MDP sees it, per entry: 0 until the last token, then the verdict.
static void toy_rewards(double* reward) {
    for (int e = 0; e < TOY_PARAMS; e++) reward[e] = e < TOY_LAST ? 0.0 : toy_verify(e - TOY_LAST);
}

// grad += weight * the score of the pair `entry`, grad log pi(token | prefix): for a softmax 1 - pi at the
// logit of the token taken, -pi at the row's others.
static void toy_add_score(double* grad, const double* logp, int entry, double weight) {
    int row = entry / TOY_V * TOY_V;
    for (int e = row; e < row + TOY_V; e++) grad[e] += weight * ((e == entry) - exp(logp[e]));
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
    double q[TOY_PARAMS], visit[TOY_PARAMS + 1] = {1.0};
    for (int s = TOY_STATES - 1; s >= 0; s--) {      // children have larger numbers than their parent
        value[s] = 0.0;
        for (int e = s * TOY_V; e < (s + 1) * TOY_V; e++) {
            q[e] = reward[e] + (e < TOY_LAST ? value[e + 1] : 0.0);
            value[s] += exp(logp[e]) * q[e];
        }
    }
    for (int e = 0; e < TOY_PARAMS; e++) {
        int s = e / TOY_V;
        visit[e + 1] = visit[s] * exp(logp[e]);
        grad[e] = visit[e + 1] * (q[e] - value[s]);
    }
    return value[0];
}

enum { CREDIT_WHOLE, CREDIT_TO_GO, CREDIT_OWN };   // credited: all rewards, those from here on, own

// The token view as a trainer would do it from one rollout, sum_t (G_t - baseline[s_t]) grad log pi(a_t|s_t)
// with G_t = sum_k gamma^(k-first) r_k, k from `first` to `last` as `credit` says; baseline: per state, or
// NULL. Writes the mean (39) over all 27 rollouts and returns the variance, summed over the 39 parameters.
static double toy_rollout_gradient(double* mean, const double* logp, const double* reward,
                                   const double* baseline, double gamma, int credit) {
    double variance = 0.0;
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
            variance += p * sample[e] * sample[e];
        }
    }
    for (int e = 0; e < TOY_PARAMS; e++) variance -= mean[e] * mean[e];       // E[x^2] - E[x]^2
    return variance;
}

// |a - b| / |b| in the usual length of a vector: 0 = the same gradient, 1 = as wrong as no gradient at all.
static double toy_relative_error(const double* a, const double* b, int n) {
    double square = 0.0;
    for (int i = 0; i < n; i++) square += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(square / inner_product(b, b, n));
}

// A difference as text (16). Below `floor` only rounding is left, whose digits depend on the compiler.
static const char* toy_difference_text(char* out, double difference, double floor) {
    if (difference < floor) snprintf(out, 16, "< %.0e", floor);
    else snprintf(out, 16, "%.4g", difference);
    return out;
}

static void print_toy(const double* logp, const double* value) {
    double passed = 0.0;
    printf("2. A language model with 27 answers: three digits from {0,1,2}; the reward is 1\n"
           "   if they add up to 3. These do; the other 20 have reward 0:\n\n"
           "   answer y  pi(1st)  pi(2nd)  pi(3rd)   product pi(y)\n");
    for (int y = 0; y < TOY_ANSWERS; y++) {
        int e[TOY_T];
        toy_path(e, y);
        if (toy_verify(y) == 0.0) continue;
        passed += exp(toy_sum_along(logp, y));
        printf("    %d%d%d     %8.4f %8.4f %8.4f   %10.4f\n", y / 9, y / 3 % 3, y % 3, exp(logp[e[0]]),
               exp(logp[e[1]]), exp(logp[e[2]]), exp(toy_sum_along(logp, y)));
    }
    printf("   expected reward: the sum of the 7 products   %.6f   (answer view)\n"
           "   V of the empty prefix, Bellman               %.6f   (token view)\n\n"
           "   V(\"0\") = %.4f. By hand: 0.2831 * 0.4907 + 0.3786 * 0.3175 (012 and 021).\n\n",
           passed, value[0], value[1]);
}

static void print_estimate(const char* name, const double* logp, const double* reward, const double* baseline,
                           int credit, const double* exact) {
    char text[16];
    double grad[TOY_PARAMS], variance = toy_rollout_gradient(grad, logp, reward, baseline, 1.0, credit);
    toy_difference_text(text, toy_relative_error(grad, exact, TOY_PARAMS), 1e-12);
    printf("   %-49s %10s  %9.4f\n", name, text, variance);
}

static void print_views(const double* logp, const double* reward, const double* exact) {
    double grad[TOY_PARAMS], weight[TOY_ANSWERS];
    char text[16];
    for (int y = 0; y < TOY_ANSWERS; y++) weight[y] = exp(toy_sum_along(logp, y)) * toy_verify(y);
    toy_answer_gradient(grad, logp, weight);
    printf("3. One gradient, written in four ways, each an exact sum over all 27 answers\n\n"
           "   39 derivatives each                                   off by   variance\n"
           "   token MDP: visit * pi * (Q - V), Bellman                   -          -\n"
           "   bandit: sum over 27 of pi(y) r(y) grad log pi(y)  %10s          -\n",
           toy_difference_text(text, toy_relative_error(grad, exact, TOY_PARAMS), 1e-12));
    print_estimate("tokens, whole return at each", logp, reward, NULL, CREDIT_WHOLE, exact);
    print_estimate("tokens, reward-to-go", logp, reward, NULL, CREDIT_TO_GO, exact);
    printf("\n   off by: |g - first line| / |first line|. variance: of one rollout's gradient,\n"
           "   summed over the 39. With one reward at the end both returns are the same.\n\n");
}

static void print_baselines(const double* logp, const double* reward, const double* value,
                            const double* exact) {
    const char* const names[] = {"none", "mean reward J", "1, far too high"};
    const double constants[] = {0.0, value[0], 1.0};
    printf("4. A baseline leaves the expected gradient alone and changes the variance\n\n"
           "   baseline                                              off by   variance\n");
    for (int i = 0; i < 3; i++) {
        double baseline[TOY_STATES];
        for (int s = 0; s < TOY_STATES; s++) baseline[s] = constants[i];
        print_estimate(names[i], logp, reward, baseline, CREDIT_TO_GO, exact);
    }
    print_estimate("V(prefix)", logp, reward, value, CREDIT_TO_GO, exact);
    printf("\n   J = %.4f, which a group of rollouts estimates for free (chapter 7), takes\n"
           "   nearly as much noise away as V(prefix), known exactly here; a learned V costs\n"
           "   a second model and is never exact.\n\n", value[0]);
}

static void lesson_4(int more) {
    double theta[TOY_PARAMS], logp[TOY_PARAMS], reward[TOY_PARAMS], value[TOY_STATES], exact[TOY_PARAMS];
    toy_fill(theta, TOY_PARAMS, 1, 1.0);
    toy_log_policy(logp, theta);
    toy_rewards(reward);
    toy_solve(value, exact, logp, reward);
    (void)more;
    printf("LESSON 4. Why it is a bandit (D3 section 4)\n\n"
           "   Question  Is every token an action, or is the whole answer one?\n"
           "   Formula   grad J = E[r(x,y) grad log pi(y|x)]                        answers\n"
           "                    = E[sum over t of r(x,y) grad log pi(y_t|x,y_<t)]   tokens\n"
           "   Symbols   x, y, y_t, pi as in lesson 3; r(x,y) the reward of the answer;\n"
           "             J = E[r(x,y)]; E the mean over the answers of pi; grad the\n"
           "             derivatives by all parameters; V, Q, gamma as in lesson 1\n\n"
           "1. With gamma = 0.99:  0.99^499 = exp(499 ln 0.99) = exp(%.4f) = %.4f\n\n"
           "   Of 500 tokens the first would get %.2f%% of the last one's credit, although\n"
           "   both belong to one answer with one reward. So gamma = 1.\n\n",
           499 * log(0.99), pow(0.99, 499), 100.0 * pow(0.99, 499));
    print_toy(logp, value);
    print_views(logp, reward, exact);
    print_baselines(logp, reward, value, exact);
    printf("Take away: both views have one gradient. One situation, one answer, one reward:\n"
           "a bandit, for which a mean over answers is a good baseline.\n");
}

/* ==========================================================================================================
 * CHAPTER 5. Rewards: the verifier                                         (D2 sections 1 to 5; D1, "reward")
 *
 * The question. A policy has answered. Who says how good the answer is?
 *
 *   RLHF (D2 section 2)  People rank answers, a reward model r(x, y) is fitted to the ranking, and RL
 *                        climbs r. Works for anything that people can compare. But the reward model is
 *                        a second network and only a proxy: a policy that is pushed hard finds its holes.
 *   RLVR (D2 section 3)  A program compares the final answer with the known one: r(x, y) = 1 if they are
 *                        the same mathematics, else 0. No second network, no annotators, the same verdict
 *                        every time. The price: it only works where an answer can be checked.
 *
 * This chapter is that program. It takes two steps.
 *   1. Extract.  Where in the response is the answer? In the last \boxed{...} (MATH), or behind the
 *      last #### (GSM8K). STRICT: nothing outside of the format counts. One number asks for two things,
 *      be right and write it where I look (D2 section 4; r3 of the lesson is right, and gets 0).
 *   2. Compare.  Is it the same answer? \frac{1}{2}, 1/2, .5 and 0.50 are one number. A verifier that
 *      compares strings punishes right answers, and the policy learns spelling instead of mathematics.
 *      On 500 typed answers to MATH-500 of which nearly all are right, comparing strings accepts 354;
 *      answers_equal below accepts 493, and the other 7 are damaged (1\frac{4}{5} typed as 14/5).
 *
 * Comparing is one function, answers_equal. Its inside is the appendix behind chapter 12. It has two ideas:
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
 *   - Values that are closer than rounding can tell look equal: sqrt(2) and (1 - 10^-13) sqrt(2).
 *   - Variables are real numbers of both signs: sqrt(x^2) is |x|, not x, and (-1)^(2n) = 1 is not seen.
 *   - An equation is compared up to a constant factor (2x = 10 is x = 5), not by its solutions.
 *
 * Traps. A false "equal" is worse than a false "different": RL searches for whatever is rewarded, so a hole
 * in the verifier will be found and widened, while a right answer that is missed costs one sample. D3 section
 * 6 calls the 0/1 reward one that can't be cheated. More exactly: it is as hard to cheat as its verifier is
 * correct, and a lucky guess (D1) is paid like an insight.
 */

enum { MAX_ANSWER = 1000,      // bytes; a longer answer is equal only to itself
       MAX_TOKENS = 2002,      // of a taken-apart answer: no byte becomes more than two
       MAX_NESTING = 80,       // levels of the parser, one or two for each parenthesis
       MAX_ITEMS = 32,         // elements of a list or set
       MAX_NAMES = 20,         // variables; what has more of them is text
       EVALUATION_POINTS = 32 };

/* ---- 5.1 Extract ---- */

static int is_digit(char c) { return c >= '0' && c <= '9'; }
static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static int is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static int lower_case(int c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; }

// Copies [start, end) without the spaces around it to out. 1 = copied; 0 = it doesn't fit, and out is "":
// half an answer might be accepted, so nothing is ever cut off.
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

// 1 when the last \boxed{...} of response equals the truth, else 0; without a box always 0. truth is the bare
// answer, such as "83", or ends in one (extract_truth). D2 section 4.
float reward_boxed(const char* response, const char* truth) {
    char answer[MAX_ANSWER + 1], expected[MAX_ANSWER + 1];
    if (!extract_boxed(response, answer, sizeof answer)) return 0.0f;
    if (!extract_truth(expected, sizeof expected, truth)) return 0.0f;
    return answers_equal(answer, expected) ? 1.0f : 0.0f;
}

// 1 when the number behind the last #### of response equals the truth, else 0: as numbers, 42.00 is 42. truth
// is the bare number, or a whole reference solution that ends in "#### 42" (D1).
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

static void print_four_rollouts(const char* truth) {
    static const char* const responses[] = {"\\boxed{83}", "The correct answer is \\boxed{83}",
                                            "The final answer is 83", "We get \\boxed{38}", "\\boxed{}"};
    static float (*const rewards[])(const char*, const char*) = {reward_boxed, reward_partial,
                                                                 reward_format};
    static const char* const names[] = {"r1", "r2", "r3", "r4", "--"};
    printf("1. Four rollouts (D2 section 4), and an empty box that tries to cheat\n\n"
           "                                                           partial   format\n"
           "     response                         in the box  strict     credit     only\n");
    for (int i = 0; i < 5; i++) {
        char answer[64];
        int found = extract_boxed(responses[i], answer, sizeof answer);
        printf("  %s %-32s %-10s", names[i], responses[i],
               !found ? "(no box)" : answer[0] ? answer : "(empty)");
        for (int k = 0; k < 3; k++) printf(" %*.4g", k ? 9 : 7, rewards[k](responses[i], truth));
        printf("\n");
    }
    printf("\n   The strict rewards are D2's [1, 1, 0, 0]. r3 is right and gets 0: right AND\n"
           "   boxed is one rule. Partial credit pays the empty box for nothing, format only\n"
           "   pays it in full. RL makes what is paid more likely: it would train this.\n\n");
}

static void print_comparisons(void) {
    static const char* const pairs[][2] = {
        {"(3x-9)/2 = x+37", "x = 83"}, {"\\frac{14}{3}", "14/3"}, {"1/3", "0.333333"},
        {"11,\\! 111", "11111"}, {"90^\\circ", "90"}, {"52_8", "528"},
        {"3, 5, 7", "7,3,5"}, {"(3,4]", "[3,4]"}, {"1 \\pm \\sqrt{19}", "1-sqrt(19), 1+sqrt(19)"},
        {"y = 2x + 3", "2x - y + 3 = 0"}, {"(x+1)^2", "x^2 + 2x + 1"}, {"(x+1)^2", "x^2 + 1"},
        {"\\sqrt{x^2}", "x"}};
    printf("2. The same answer? Normalize the spelling, then evaluate:\n\n");
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        printf("  %-18s %-24s %s\n", pairs[i][0], pairs[i][1],
               answers_equal(pairs[i][0], pairs[i][1]) ? "the same" : "different");
    printf("\n");
}

static void print_hash_answers(void) {
    static const char* const responses[] = {"#### **$42.00** apples", "#### 42, no, #### 41",
                                            "The answer is 42", "#### forty-two"};
    printf("3. GSM8K's format (D1): the number behind the last ####, compared as a number\n\n"
           "  response               read       reward (truth: 6*7=<<6*7=42>>42 #### 42)\n");
    for (int i = 0; i < 4; i++) {
        char answer[64];
        int found = extract_hash_answer(responses[i], answer, sizeof answer);
        printf("  %-22s %-10s %6.4g\n", responses[i], found ? answer : "(none)",
               reward_gsm8k(responses[i], "6*7=<<6*7=42>>42 #### 42"));
    }
    printf("\n");
}

static void lesson_5(int more) {
    (void)more;
    printf("LESSON 5. Rewards: the verifier (D2, D1)\n\n"
           "   Question  An answer has been written. Who says how good it is?\n"
           "   Formula   RLVR: r(x,y) = 1 if the answer in y equals the known one, else 0\n"
           "             RLHF: r(x,y) = what a network says that was fitted to rankings\n"
           "   Symbols   x the question, y the response; a program, the verifier, compares\n\n"
           "The question: half of 3x-9 equals x+37, that is (3x-9)/2 = x+37.\n"
           "By hand: 3x - 9 = 2x + 74, so x = 83.\n\n");
    print_four_rollouts("83");
    print_comparisons();
    print_hash_answers();
    printf("Take away: the reward is the only thing you design. It can be trusted as far as\n"
           "its verifier is right.\n");
}

/* ==========================================================================================================
 * CHAPTER 6. Rollouts and the tool                                                                       (D1)
 *
 * Question: what exactly did the model do, and what was done to it?
 *
 * A rollout is one answer, sampled token by token from <|assistant_start|> to <|assistant_end|>.
 * sample_rollouts() in train_gpt.c samples the K rollouts of a question side by side; the threads share the
 * questions.
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
 * what to ask (to close the call is an action too: mask 1). The result is a fact about the world, like a
 * transition p(s'|s,a) of chapter 1, and a fact has no gradient.
 *
 * In memory the K rollouts of a question are rows of arrays, ids (K,T) and mask (K,T): prompt, answer,
 * padding. It is the shape of chapter 3, and everything that follows keeps it.
 *
 * Traps. (1) Leave the output in the loss and the model is trained to predict the calculator: it will happily
 * write <|output_start|> by itself, with a number of its own. (2) The tool answers only what it understands.
 * For 2**3, 1/0 or "three" there is no output at all, and the model has to go on without one, as in nanochat.
 * (3) The closing <|assistant_end|> is sampled and belongs to the loss: without it the model never learns to
 * stop. (nanochat's rollouts drop it; ours keep it.)
 * ======================================================================================================== */

enum { EXPRESSION_SIZE = 256 };        // bytes that calculate() takes; the tool takes one less

// + - * / // and parentheses on numbers, by the evaluator of the appendix (where an answer is evaluated too).
static int evaluate_arithmetic(double* value, int64_t* num, int64_t* den, const char* text);

// Prints a value: whole numbers in full, others with up to 12 significant digits and no zeros at the end. 1 =
// printed; 0 = it doesn't fit, or 12 digits don't describe it.
static int print_value(char* out, int cap, double value, int64_t num, int64_t den) {
    char text[64];
    double size = fabs(value);
    if (den != 1 && !(size >= 1e-12 && size < 1e12)) return 0;
    int decimals = den == 1 ? 0 : 11 - (int)floor(log10(size));  // 66.6666666667 has 12 digits
    if (den == 1) snprintf(text, sizeof text, "%lld", (long long)num);
    else snprintf(text, sizeof text, "%.*f", decimals > 0 ? decimals : 0, value);
    char* end = text + strlen(text);
    while (strchr(text, '.') && (end[-1] == '0' || end[-1] == '.')) *--end = 0;
    return copy_trimmed(out, cap, text, text + strlen(text));
}

// The tool. Numbers may be written 1,000 and .5; // rounds a quotient down (2 of the 27,998 annotations
// <<48/2=24>> of GSM8K use it). Fractions are exact inside, so that 0.1+0.2 is 0.3, and the result is printed
// as GSM8K prints it, because the model will copy it: 24, 0.2. out has cap bytes. 1 = evaluated; 0 = no
// output, and out is "". The tool is total: every text gets a short result or none, and soon. (One that hands
// its text to a real interpreter is stopped by a single 9**9**9, and a policy that is paid for right answers
// searches for such holes.)
int calculate(const char* expression, char* out, int cap) {
    char plain[EXPRESSION_SIZE + 1] = "";
    double value;
    int64_t num, den;
    size_t length = strlen(expression);
    if (cap > 0) out[0] = 0;
    if (length > EXPRESSION_SIZE || strspn(expression, "0123456789+-*/()., ") != length) return 0;
    for (const char *p = expression, *end = p + length; p < end; p++)
        if (*p != ',' || !is_thousands_comma(expression, p)) strncat(plain, p, 1);
    return evaluate_arithmetic(&value, &num, &den, plain) && print_value(out, cap, value, num, den);
}

typedef enum { TOOL_IDLE, TOOL_READING, TOOL_CALLED } ToolState;

// The tool's state after `length` tokens of an answer: READING between <|python_start|> and <|python_end|>,
// CALLED right behind a <|python_end|> that closes an expression. from is the first token of the expression.
static ToolState tool_state(const int* ids, int length, int* from) {
    int last = length - 1;
    int i = last - (length > 0 && ids[last] == PYTHON_END);
    while (i >= 0 && ids[i] != PYTHON_START && ids[i] != PYTHON_END) i--;
    *from = i + 1;
    if (i < 0 || ids[i] != PYTHON_START) return TOOL_IDLE;
    return ids[last] == PYTHON_END ? TOOL_CALLED : TOOL_READING;
}

// The calculator as sample_rollouts() wants it: after a call it returns the tokens to force, otherwise none.
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

// The text of a rollout's answer, special tokens by name: what the reward function reads. text_free() it.
static Text rollout_text(const Rollout* r) {
    Text text = {0};
    decode_tokens(&text, r->ids + r->prompt, r->length, 1);
    return text;
}

// Did the tool answer in this rollout? (If the model itself writes <|output_start|>, its mask is 1.)
static int used_tool(const Rollout* r) {
    for (int t = r->prompt; t < r->prompt + r->length; t++)
        if (r->ids[t] == OUTPUT_START && !r->mask[t]) return 1;
    return 0;
}

// A token sequence, fit for a terminal: calls as [17+26 -> 43], or [1/0] without an answer; other bytes \xNN.
static void append_readable(Text* out, const char* text) {
    static const char* const shown[][2] = {{"<|python_start|>", "["}, {"<|output_end|>", "]"},
        {"<|python_end|><|output_start|>", " -> "}, {"<|python_end|>", "]"}, {"<|assistant_end|>", ""}};
    enum { SHOWN = sizeof shown / sizeof *shown };
    text_append(out, "", 0);
    for (const char *s = text, *stop = text + strlen(text); s < stop;) {
        int i = 0, n = max_int(1, utf8_length(s, stop));
        while (i < SHOWN && strncmp(s, shown[i][0], strlen(shown[i][0]))) i++;
        if (i < SHOWN) {
            n = (int)strlen(shown[i][0]);
            text_append(out, shown[i][1], strlen(shown[i][1]));
        } else append_printable(out, s, (size_t)n);
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

// The state of the tool behind token t of a rollout's row, t >= prompt.
static const char* tool_state_name(const Rollout* r, int t) {
    static const char* const names[] = {"idle", "reading", "called"};
    int from;
    return r->mask[t] ? names[tool_state(r->ids + r->prompt, t + 1 - r->prompt, &from)] : "answers";
}

// A rollout that follows a script instead of a model: each token of the script counts as sampled, and the
// tool answers where it is called. Lives until rollouts_free().
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

static int nats_decimals(double x) { return x < 9.99995 ? 4 : x < 99.9995 ? 3 : x < 999.995 ? 2 : 0; }

// A number of nats (or of thousandths) in 8 columns, with as many decimals as fit; "-" for a forced token.
static void print_nats(double x, int sampled) {
    if (sampled) printf(" %7.*f", nats_decimals(fabs(x)), x);
    else printf("       -");
}

static void print_change(double x, int sampled) { // the same with its sign
    if (!sampled || fabs(x) < 5e-5) print_nats(0.0, sampled);
    else printf(" %+7.*f", nats_decimals(fabs(x)), x);
}

// A rollout as a table: one line per token, and the sums in the last line. Column m is the mask, column tool
// the state of the tool behind the token. The arrays (T1) are shifted: logp of each sampled token, nats;
// other, the same under a second model or after an update, or NULL; names (3) of the two and their
// difference; dlogp, or NULL, printed in thousandths.
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

static void lesson_6(int more) {
    const char* const expressions[] = {"12*3", "(3+4)*1,000", "1/3", "2**3", "1/0"};
    const char* question = "There are 12 boxes with 3 pens each. How many pens?";
    const int script[] = {PYTHON_START, '1', '2', '*', '3', PYTHON_END,
                          '\n', '#', '#', '#', '#', ' ', '3', '6', ASSISTANT_END};
    Tokens prompt = {0};
    Config small = train_defaults().config;
    (void)more;
    small.layers = 1;
    Model m = model_new(small);    // all weights are 0, so every logit is 0 and every token equally likely
    render_prompt(&prompt, question);
    Rollout* r = play_script(&prompt, script, sizeof script / sizeof *script);
    int sampled = count_masked(r->mask, r->T);
    score_rollouts(r->logp, &m, r, 1);
    printf("LESSON 6. Rollouts and the tool (D1)\n\n"
           "   Question  What exactly did the model do, and what was done to it?\n"
           "   Formula   log pi(y|x) = sum over t of mask_t log pi(y_t | x, y_<t)\n"
           "   Symbols   x, y, y_t, pi as in lesson 3; mask_t: 1 = the model sampled\n"
           "             token t, 0 = it was forced: the program that runs it wrote it\n\n"
           "1. %s\n\n", question);
    print_tokens(r, r->logp, NULL, NULL, NULL);
    printf("\n   The answer follows a script, so that no trained model is needed; the tool is\n"
           "   the real one. It saw <|python_end|>, computed 12*3 and wrote the 4 tokens.\n"
           "   This model finds all %d tokens equally likely. By hand: log pi(y|x) =\n"
           "   -%d ln %d = %.4f nats; all %d tokens, the tool's too: %.4f.\n\n",
           VOCAB_SIZE, sampled, VOCAB_SIZE, -sampled * log(VOCAB_SIZE), r->length,
           -r->length * log(VOCAB_SIZE));
    printf("2. What the tool answers\n\n   %-22s %s\n", "expression", "output");
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) {
        char out[64];
        printf("   %-22s %s\n", expressions[i], calculate(expressions[i], out, sizeof out) ? out : "(none)");
    }
    printf("\nTake away: forced tokens belong to what the model reads, not to what it does.\n"
           "They are no part of log pi(y|x) and get no gradient.\n");
    rollouts_free(r);
    tokens_free(&prompt), model_free(&m);
}

/* ==========================================================================================================
 * CHAPTER 7. Advantages: better than average                                               (D1, D3 section 4)
 *
 * Question: sixteen answers to one question have been rewarded with 0 or 1. By how much should each be made
 * more or less likely?
 *
 * The gradient of chapter 1 says: by its reward. With rewards of 0 and 1 a wrong answer then changes nothing.
 * Subtract what was to be expected, and every answer counts. The mean of the group, the K answers to the same
 * question, is the cheapest expectation there is: no second model has to learn it.
 *
 *     centered    A_i = r_i - mean(r)                                  nanochat (D1), Dr. GRPO
 *     RLOO        A_i = r_i - mean of the OTHER rewards                leave one out (Kool et al. 2019)
 *     GRPO        A_i = (r_i - mean(r)) / (std(r) + eps)               DeepSeekMath 2024
 *     GAE         A_t = sum over l of (gamma lambda)^l delta_{t+l}   per token, needs a value model: ch. 2
 *
 * std is the standard deviation, the root of the mean square of r_i - mean(r); eps is a tiny number, against
 * 0/0. RLOO is centered, stretched: the mean of the others is (K mean - r_i) / (K - 1), so
 *
 *     r_i - (K mean - r_i) / (K - 1) = K / (K - 1) * (r_i - mean)
 *
 * The group's mean contains r_i itself, so centered takes a share 1/K of each answer's own reward away: its
 * expected gradient is (K - 1) / K times the true one. RLOO has exactly the true one. GRPO divides by a
 * number that depends on the rewards: the true one times a factor that is larger where answers are nearly
 * always or nearly never right. The lesson computes these expectations exactly.
 *
 * Which standard deviation? torch.std divides the squares by K - 1 ("sample": D3, TRL, verl), numpy.std by K
 * ("population"). For [1,1,0,0] the mean is 1/2 and the squares add up to 4 * 1/4 = 1:
 *
 *     sample      std = sqrt(1/3) = 0.5774      A = 0.5 / 0.5774 = +-0.8660
 *     population  std = sqrt(1/4) = 0.5         A = 0.5 / 0.5    = +-1
 *
 * Zero-variance groups. When all K rewards are equal, every rule that compares gives 0 to everyone: nothing
 * is learned from that question in this step. With a chance p of being right it happens with probability
 * p^K + (1 - p)^K.
 *
 * Traps. (1) 0/0 in a zero-variance group: the result here is exactly 0. (2) "Most rewards equal" is no such
 * group. D3's third experiment expects standardized advantages near 0 when 6 of 8 scores are the same; only
 * 8 of 8 give 0. (3) The baseline should come from the same question. The mean of the whole batch would not
 * bend the gradient either (chapter 4), but it compares hard questions with easy ones: noise.
 * ======================================================================================================== */

// A_i = r_i - mean(r). adv, reward (K); adv may be the same array as reward. Unit: that of the rewards. K < 1
// writes nothing, K = 1 gives 0, and so do equal rewards, exactly: in double the sum of K equal floats is
// exact (24 bits of r plus the bits of K fit into 53). D1; Dr. GRPO (Liu et al. 2025).
void advantages_centered(float* adv, const float* reward, int K) {
    double mean = 0.0;
    for (int k = 0; k < K; k++) mean += reward[k];
    mean /= K > 0 ? K : 1;
    for (int k = 0; k < K; k++) adv[k] = (float)(reward[k] - mean);
}

// A_i = (r_i - mean(r)) / (std(r) + eps) with the sample standard deviation (K - 1), as torch.std. adv,
// reward (K), may be the same array. No unit. K < 1 writes nothing; K = 1 (where torch.std is NaN) and equal
// rewards give exactly 0, even for eps = 0. DeepSeekMath (Shao et al. 2024); D3 section 4.
void advantages_grpo(float* adv, const float* reward, int K, float eps) {
    double square = 0.0;
    advantages_centered(adv, reward, K);
    for (int k = 0; k < K; k++) square += (double)adv[k] * adv[k];
    if (square == 0.0) return;                                     // all equal, or K = 1: already exactly 0
    double scale = sqrt(square / (K - 1)) + eps;
    for (int k = 0; k < K; k++) adv[k] = (float)(adv[k] / scale);
}

// A_i = r_i - mean of the other K - 1 rewards = K / (K - 1) * (r_i - mean(r)). adv, reward (K), may be the
// same array. Unit: that of the rewards. K < 1 writes nothing; K = 1 gives 0. Kool et al. 2019; D3 section 4.
void advantages_rloo(float* adv, const float* reward, int K) {
    advantages_centered(adv, reward, K);
    for (int k = 0; k < K && K > 1; k++) adv[k] = (float)((double)K / (K - 1) * adv[k]);
}

// The rules by name; GAE, with an advantage for each token, is group_gae()'s. eps is verl's 1e-6 (D3 prints
// 1e-8, TRL has 1e-4): rewards that differ by float rounding, 6e-8, are not blown up to +-1.
enum { ADVANTAGE_NONE, ADVANTAGE_CENTERED, ADVANTAGE_RLOO, ADVANTAGE_GRPO, ADVANTAGE_GAE };

static void compute_advantages(float* adv, const float* reward, int K, int kind) {
    if (kind == ADVANTAGE_NONE) memmove(adv, reward, (size_t)K * sizeof(float));
    if (kind == ADVANTAGE_CENTERED) advantages_centered(adv, reward, K);
    if (kind == ADVANTAGE_RLOO) advantages_rloo(adv, reward, K);
    if (kind == ADVANTAGE_GRPO) advantages_grpo(adv, reward, K, 1e-6f);
}

// out (K,T1): the answer's advantage, adv (K), at each of its sampled tokens, 0 where the mask is 0 (D3, 4).
void broadcast_advantages(float* out, const float* adv, const int* mask, int K, int T1) {
    for (int k = 0; k < K; k++)
        for (int i = k * T1; i < (k + 1) * T1; i++) out[i] = mask[i] ? adv[k] : 0.0f;
}

// GAE along the sampled tokens of each answer: what the tool wrote is no step of the policy. All arrays
// (K,T1); reward and value belong to the token that was sampled there, adv is 0 where the mask is 0.
static void group_gae(float* adv, const float* reward, const float* value, const int* mask, int K, int T1,
                      float gamma, float lambda) {
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

// Probability that K answers, each right with chance p, make a zero-variance group: all right or all wrong.
static double zero_variance_odds(double p, int K) { return pow(p, K) + pow(1.0 - p, K); }

// Expected gradient of a rule, exactly. A policy with one parameter answers right with p = sigmoid(theta);
// its score is d log pi / d theta = r - p. One update uses g = (1/K) * sum over i of A_i (r_i - p); its mean
// is a sum over all 2^K groups. The truth is dJ / d theta = dp / d theta = p (1 - p).
static double expected_gradient(double p, int K, int kind) {
    double expected = 0.0;
    for (unsigned group = 0; group < 1u << K; group++) {           // bit k of `group` = reward of answer k
        float reward[16], adv[16] = {0};
        double probability = 1.0, g = 0.0;
        for (int k = 0; k < K; k++) {
            reward[k] = (float)(group >> k & 1);
            probability *= reward[k] > 0.0f ? p : 1.0 - p;
        }
        compute_advantages(adv, reward, K, kind);
        for (int k = 0; k < K; k++) g += adv[k] * (reward[k] - p) / K;
        expected += probability * g;
    }
    return expected;
}

static void print_advantages(void) {
    static const char* const names[] = {"reward", "centered", "RLOO", "GRPO"};
    const float four[4] = {1, 1, 0, 0}, sixteen[16] = {1, 1, 1}, eight[8] = {1, 1};
    float a[4], b[16], c[8];
    printf("1. D2's four rollouts [1,1,0,0], D1's sixteen, the eight of D3's experiment 3\n\n"
           "                  K = 4               K = 16                K = 8\n"
           "              2 right  2 wrong    3 right 13 wrong    2 right  6 wrong\n");
    for (int kind = ADVANTAGE_NONE; kind <= ADVANTAGE_GRPO; kind++) {
        compute_advantages(a, four, 4, kind);
        compute_advantages(b, sixteen, 16, kind);
        compute_advantages(c, eight, 8, kind);
        printf("   %-9s %9.4f%9.4f  %9.4f%9.4f  %9.4f%9.4f\n", names[kind], a[0], a[3], b[0], b[15], c[0],
               c[7]);
    }
    printf("\n   K = 4: m = 1/2, the squares of r_i - m add up to 4 * 1/4 = 1. RLOO: 4/3 * 1/2\n"
           "   = 2/3. GRPO: s = sqrt(1 / (K-1)) = 0.5774 (torch.std), 1/2 / 0.5774 = 0.8660;\n"
           "   s = sqrt(1 / K) = 1/2 (numpy.std) would give 1. K = 16: m = 3/16. K = 8: D3\n"
           "   expects A near 0 when 6 of 8 rewards are equal. They are not:\n"
           "   s = sqrt(8 * 1/4 * 3/4 / 7) = 0.4629, 3/4 / s = 1.6202, -1/4 / s = -0.5401.\n\n");
}

static void print_zero_variance(void) {
    printf("2. Zero-variance groups: all K rewards equal, so every A is 0. Their share, when\n"
           "   one answer is right with chance p, is p^K + (1-p)^K\n\n"
           "   p 1/2,  K = 4   %8.4f   by hand 1/16 + 1/16\n"
           "   p 3/16, K = 16  %8.4f   by hand 0 + (13/16)^16\n"
           "   p 0.01, K = 16  %8.4f   by hand (99/100)^16: too hard, nothing to compare\n\n",
           zero_variance_odds(0.5, 4), zero_variance_odds(0.1875, 16), zero_variance_odds(0.01, 16));
}

static void print_expected_gradients(void) {
    const double chances[] = {0.5, 0.5, 0.01};
    printf("3. The expected gradient, over ALL 2^K groups, divided by the true one, p (1-p)\n\n"
           "   K  p            centered      RLOO      GRPO\n");
    for (int i = 0; i < 3; i++) {
        double p = chances[i];
        int K = i ? 8 : 2;
        printf("   %d  %-10g", K, p);
        for (int kind = ADVANTAGE_CENTERED; kind <= ADVANTAGE_GRPO; kind++)
            printf("%10.4f", expected_gradient(p, K, kind) / (p * (1.0 - p)));
        printf("\n");
    }
    printf("\n   By hand, K = 2: only 1,0 and 0,1 count, chance 2 p (1-p). Centered A = +-1/2,\n"
           "   so g = 1/2 (1/2 (1-p) + 1/2 p) = 1/4, on average p (1-p) / 2: half the truth,\n"
           "   (K-1)/K. RLOO's K/(K-1) mends it. GRPO's factor depends on the question: rare\n"
           "   successes (p = 0.01) and rare failures are enlarged most.\n\n");
}

static void print_gae(void) {
    const float reward[4] = {0.0f, 0.5f, 0.0f, 1.0f}, value[4] = {0.1f, 0.4f, 0.6f, 0.5f};
    float a[4];
    printf("4. GAE (chapter 2), gamma = 1, r = 0, 0.5, 0, 1 and V = 0.1, 0.4, 0.6, 0.5\n\n");
    for (float lambda = 1.0f; lambda >= 0.0f; lambda -= 0.5f) {
        advantages_gae(a, reward, value, 4, 1.0f, lambda);
        printf("   lambda %.1f   A = %.3f, %.3f, %.3f, %.3f\n", lambda, a[0], a[1], a[2], a[3]);
    }
    printf("\n   By hand, lambda 0.5: A_3 = 1 - 0.5 = 0.5, A_2 = 0.5 - 0.6 + 0.5 A_3 = 0.15.\n\n");
}

// ---- experiment 3 of D3: how sparse is a reward of 0 or 1? -----------------------------------------------
//
// D3: "often 6 of the 8 replies have exactly the same score, and the standardized advantages are near 0".
// `./rl experiment 3` (docs/tools.c) samples the replies and calls experiment_3() with them.

// D3's rule: 1 for a reply of 50 to 100 characters, as a reader sees it.
static float reward_length(const char* response, const char* truth) {
    Text text = {0};
    int characters = 0;
    (void)truth;
    append_readable(&text, response);
    for (const char* s = text.data; *s; s++) characters += (*s & 0xC0) != 0x80;
    text_free(&text);
    return characters >= 50 && characters <= 100 ? 1.0f : 0.0f;
}

// reward[i] (groups,K): the same answers under reward i.
static void experiment_3(const float* const* reward, const char* const* names, int rewards, int groups,
                         int K) {
    float* adv = allocate((size_t)rewards * K, sizeof(float));
    printf("\n1. The first question's %d answers: the reward r, and GRPO's advantage A.\n\n    k", K);
    for (int i = 0; i < rewards; i++) {
        printf("%10s %7s", names[i], "A");
        advantages_grpo(adv + i * K, reward[i], K, 1e-6f);
    }
    for (int k = 0; k < K; k++) {
        printf("\n%5d", k + 1);
        for (int i = 0; i < rewards; i++) printf("%10g %7.4f", reward[i][k], adv[i * K + k]);
    }
    printf("\n\n2. The %d groups of %d. z: the share of zero-variance groups (all A are 0).\n\n"
           "   reward     mean reward   |A| < 0.1        z   p^%d + (1-p)^%d, p = the mean\n", groups,
           K, K, K);
    for (int i = 0; i < rewards; i++) {
        double mean = 0.0, n = (double)groups * K;
        int zero_variance = 0, small = 0, binary = 1;
        for (const float* r = reward[i]; r < reward[i] + groups * K; r += K) {
            int varies = 0;
            advantages_grpo(adv, r, K, 1e-6f);
            for (int k = 0; k < K; k++) {
                mean += r[k] / n;
                binary &= r[k] == 0.0f || r[k] == 1.0f;
                varies |= r[k] != r[0];
                small += fabs(adv[k]) < 0.1;
            }
            zero_variance += !varies;
        }
        printf("   %-10s %11.3f %11.3f %8.3f", names[i], mean, small / n, (double)zero_variance / groups);
        printf(binary ? "%10.3f\n" : "         -\n", zero_variance_odds(mean, K));
    }
    printf("\n   Were all questions equally hard, z would be the last column on average; easy\n"
           "   and hard ones lift it.\n\n"
           "Take away: a group is lost when ALL its scores are equal, not when most are. The\n"
           "partial reward grades what boxed calls 0, so it never loses more groups: D1's\n"
           "\"the finer the reward, the steadier\".\n");
    free(adv);
}

static void lesson_7(int more) {
    printf("LESSON 7. Advantages: better than average (D1, D3 section 4)\n\n"
           "   Question  K answers to one question have been rewarded. How much more or less\n"
           "             likely should each of them become?\n"
           "   Formula   centered  A_i = r_i - m                          nanochat, Dr. GRPO\n"
           "             RLOO      A_i = r_i - m_i = K/(K-1) (r_i - m)\n"
           "             GRPO      A_i = (r_i - m) / (s + eps)\n"
           "   Symbols   r_i the reward of answer i, m the mean of all K, m_i that of the\n"
           "             others, s the standard deviation of all, eps = 1e-6 for 0/0. A_i,\n"
           "             the advantage, goes to every sampled token of answer i\n\n");
    print_advantages();
    print_zero_variance();
    print_expected_gradients();
    if (more) print_gae();
    printf("Take away: an advantage is a comparison. Without difference there is nothing to\n"
           "learn, and the rules differ only in how they scale the difference.\n");
}

/* ==========================================================================================================
 * CHAPTER 8. The objective: reward minus beta KL                                               (D3 section 5)
 *
 * Question: a policy that only chases reward leaves the region where its reward can be trusted, and forgets
 * what pre-training taught it. How do we hold it near its starting point, and how do we measure "near" from
 * samples?
 *
 * The objective has two parts that pull against each other:
 *
 *     J(pi) = E over x ~ D, y ~ pi(.|x) of [ r(x,y) ]  -  beta E over x ~ D of [ KL(pi(.|x) || pi_ref(.|x)) ]
 *
 *     D       the set of prompts              pi      the policy in training
 *     r       reward model or verifier        pi_ref  the reference model: the SFT model, frozen
 *     beta    the price of one nat of drift   nat     the unit of natural logarithms, 1.443 bits
 *
 * KL(P||Q) = sum_y P(y) log(P(y)/Q(y)) is never negative, is 0 only for P = Q, and is not symmetric. nanochat
 * (D1) leaves the second part out, that is beta = 0.
 *
 * Estimating it. A sum over all answers cannot be done, but it is an average over answers of the policy, and
 * the rollouts are such answers: KL(pi || pi_ref) = E over y ~ pi of [ L(y) ], with the log-ratio
 * L(y) = log pi(y|x) - log pi_ref(y|x), in the code logp - logp_ref. Three estimators are in use (Schulman
 * 2020), all for samples FROM THE POLICY:
 *
 *     k1 = L                    right on average, noisy, negative for many samples
 *     k2 = L^2 / 2              never negative, wrong on average unless the drift is small
 *     k3 = exp(-L) - 1 + L      right on average, never negative
 *
 * k3 is k1 plus pi_ref/pi - 1, whose average under pi is sum pi * pi_ref/pi - 1 = 0: near the reference it
 * cancels noise. And e^u >= 1 + u for every u, so k3 >= 0.
 *
 * Using it. In the REWARD an estimate is a number, and the policy gradient multiplies it with the score, grad
 * log pi. In the LOSS it is differentiated. The gradient that we want is
 *
 *     grad KL = E[ L * score ]                             (the term E[score] is 0, chapter 4)
 *
 *     k1 in the reward   E[ L * score ]                  exact: InstructGPT's PPO, verl's use_kl_in_reward
 *     k1 in the loss     E[ 1 * score ] = 0              does nothing at all, on average
 *     k2 in the loss     E[ L * score ]                  exact, although k2 itself is biased
 *     k3 in the loss     E[ (1 - pi_ref/pi) * score ]    grad KL(pi_ref || pi), the other KL: GRPO, TRL
 *     k3 in the reward   E[ k3 * score ]                 grad of one KL minus the other: D3's code
 *     k3 * pi/pi_old in the loss                         exact again; pi_old is the sampler, a constant
 *
 * Close to the reference the two KLs differ only by the cube of the drift, so their difference has almost no
 * gradient: k3 in the reward hardly holds the policy at all. And "k2 exact" needs the log-ratio of the whole
 * ANSWER: applied token by token, as is usual, a loss term does not see what its token leads to later. The
 * reward form with the return does see it.
 *
 * Where it leads. Write pi*(y) = pi_ref(y) exp(r(y)/beta) / Z, where Z makes the sum 1. Then
 *
 *     J(pi) = E[ r - beta log(pi/pi_ref) ] = beta E[ log( pi_ref exp(r/beta) / pi ) ]
 *           = beta log Z  -  beta KL(pi || pi*)
 *
 * so the best policy is pi*, its value is beta log Z, and every answer that pi_ref can write survives.
 *
 * Where D3 needs care.
 *   - Signs. D3 prints k1 = -L and k3 = exp(L) - 1 - L, with the same L. Both are right for samples from
 *     pi_ref, as estimates of KL(pi_ref || pi). Here, as in TRL and verl, the samples come from the policy,
 *     and with D3's signs k1 estimates minus the KL and k3 nothing useful.
 *   - D3 recommends k3 and puts the KL into the reward. The two do not go together: in the reward use k1.
 *   - "k3 has low variance" holds for moderate drift. Where the policy has almost given up an answer that
 *     pi_ref likes, pi_ref/pi is huge and k3 is the noisier one: `./rl experiment 2` shows it.
 *   - Sum or mean. D3's code subtracts beta times the MEAN over the tokens and calls it a literal translation
 *     of the formula. The formula has the SUM: n times more for n tokens.
 * ======================================================================================================== */

// e^x and its derivative for log-ratios that a drifting policy can make large. Up to x = 80 this is exp: e^80
// = 5.5e34, and the largest float is 3.4e38. Past 80 it goes on along the tangent: both stay finite. A cut
// would have derivative 0 and tell the optimizer that all is well exactly where the drift is worst.
enum { EXP_LIMIT = 80 };

static double bounded_exp(double* derivative, double x) {
    *derivative = exp(x > EXP_LIMIT ? EXP_LIMIT : x);      // a NaN stays a NaN
    return x > EXP_LIMIT ? *derivative * (1.0 + x - EXP_LIMIT) : *derivative;
}

// Estimate of KL(policy || reference) from one sample of the policy, in nats, and its derivative by logp.
// estimator is 1, 2 or 3. k3 of a small log-ratio x is about x^2/2, the tiny rest of numbers near 1: expm1(x)
// = e^x - 1 keeps the digits that exp(x) - 1 loses.
static double kl_estimate(double* derivative, double log_ratio, int estimator) {
    *derivative = estimator == 1 ? 1.0 : estimator == 2 ? log_ratio : (double)NAN;
    if (estimator == 1) return log_ratio;
    if (estimator == 2) return 0.5 * log_ratio * log_ratio;
    if (estimator != 3) return (double)NAN;
    double x = -log_ratio, power;
    double ratio_minus_1 = x > EXP_LIMIT ? bounded_exp(&power, x) - 1.0 : expm1(x);
    *derivative = x > EXP_LIMIT ? 1.0 - power : -ratio_minus_1;
    return ratio_minus_1 - x;
}

static void kl_each(float* kl, const float* logp, const float* logp_ref, int n, int estimator) {
    double derivative;
    for (int i = 0; i < n; i++)
        kl[i] = (float)kl_estimate(&derivative, (double)logp[i] - logp_ref[i], estimator);
}

// The three estimators of KL(policy || reference), kl (n) in nats, one value per sample or token: logp (n) is
// its log-probability under the policy, which also drew it, logp_ref (n) that under the reference.
// Nothing is averaged and there is no mask: use masked_mean or a sum. n <= 0 writes nothing. The result is
// finite for log-ratios within +-6000 (see bounded_exp); infinite or NaN input gives infinite or NaN output.
// Schulman, "Approximating KL Divergence" (2020), where r = pi_ref/pi, k1 = -log r, k3 = (r - 1) - log r.
void kl_k1(float* kl, const float* logp, const float* logp_ref, int n) { kl_each(kl, logp, logp_ref, n, 1); }
void kl_k2(float* kl, const float* logp, const float* logp_ref, int n) { kl_each(kl, logp, logp_ref, n, 2); }
void kl_k3(float* kl, const float* logp, const float* logp_ref, int n) { kl_each(kl, logp, logp_ref, n, 3); }

// The KL penalty in the reward: -beta kl on each sampled token and, on an answer's last one, its reward. out
// (K,T1), in units of the reward: its sum over an answer is the reward minus beta times its KL; reward (K);
// kl (K,T1), or NULL: no penalty, not read where mask (K,T1) is 0; an answer without sampled tokens keeps
// nothing. mean: 1 = the mean over the answer's tokens, as D3's code has it. Ziegler et al. (2019); D3
// section 5.
void token_rewards(float* out, const float* reward, const float* kl, const int* mask, int K, int T1,
                   float beta, int mean) {
    for (int k = 0; k < K; k++) {
        int last = -1, count = mean ? count_masked(mask + k * T1, T1) : 1;
        for (int i = k * T1; i < (k + 1) * T1; i++) {
            out[i] = mask[i] && kl ? -beta * kl[i] / (float)count : 0.0f;
            if (mask[i]) last = i;
        }
        if (last >= 0) out[last] += reward[k];
    }
}

// The KL penalty in the loss, in nats, to be multiplied by beta and added to the loss of chapter 9. dlogp (n)
// out: d(loss)/d(logp) as autograd has it: k1 -> 1, k2 -> L, k3 -> 1 - pi_ref/pi. logp, logp_ref (n) in nats;
// estimator 1, 2 or 3, else NaN; w (n) what each token counts (token_weights() in train_gpt.c): where it is
// 0, dlogp is 0 and nothing is read. Shao et al. (2024), equation 4 (k3).
double loss_kl(float* dlogp, const float* logp, const float* logp_ref, const float* w, int n, int estimator) {
    double loss = 0.0, derivative;
    for (int i = 0; i < n; i++) {
        dlogp[i] = 0.0f;
        if (w[i] == 0.0f) continue;
        loss += w[i] * kl_estimate(&derivative, (double)logp[i] - logp_ref[i], estimator);
        dlogp[i] = (float)(w[i] * derivative);
    }
    return loss;
}

static double exact_kl(const double* logp, const double* logp_ref, int n) { // sum p log(p/q), the definition
    double kl = 0.0;
    for (int i = 0; i < n; i++) kl += exp(logp[i]) * (logp[i] - logp_ref[i]);
    return kl;
}

// Mean and variance of an estimator over n outcomes, drawn with logp. sign -1: as D3 prints it.
static double kl_moments(double* variance, const double* logp, const double* logp_ref, int n, double sign,
                         int estimator) {
    double mean = 0.0, square = 0.0, derivative;
    for (int i = 0; i < n; i++) {
        double k = kl_estimate(&derivative, sign * (logp[i] - logp_ref[i]), estimator);
        mean += exp(logp[i]) * k;
        square += exp(logp[i]) * k * k;
    }
    *variance = square - mean * mean;
    return mean;
}

// The ways to use an estimator, as data. In the loss its derivative multiplies the score, in the reward its
// value, and for k3 times the ratio pi/pi_old both (product rule at ratio 1). sign -1: as D3 prints it.
enum { KL_USES = 9 };
static const struct { const char* name; int estimator, in_loss, in_reward, sign; } kl_uses[KL_USES] = {
    {"k1 in the loss", 1, 1, 0, 1},   {"k2 in the loss", 2, 1, 0, 1},   {"k3 in the loss", 3, 1, 0, 1},
    {"k3 * ratio, loss", 3, 1, 1, 1}, {"k1 in the reward", 1, 0, 1, 1}, {"k2 in the reward", 2, 0, 1, 1},
    {"k3 in the reward", 3, 0, 1, 1}, {"D3 k1, reward", 1, 0, 1, -1},   {"D3 k3, reward", 3, 0, 1, -1}};

static double kl_score_weight(double log_ratio, int use) {
    double derivative;
    double value = kl_estimate(&derivative, kl_uses[use].sign * log_ratio, kl_uses[use].estimator);
    return kl_uses[use].in_loss * derivative + kl_uses[use].in_reward * value;
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

// How often the answers of p (27) pass chapter 4's verifier: E[r].
static double toy_pass_rate(const double* p) {
    double passed = 0.0;
    for (int y = 0; y < TOY_ANSWERS; y++) passed += p[y] * toy_verify(y);
    return passed;
}

// Plain gradient ascent from theta on the exact J, the expected sum of r(s,a) - beta * log-ratio(s,a).
// Returns the J before the last step.
static double toy_ascend(double* theta, const double* logp_ref, const double* reward, double beta,
                         double rate, int steps) {
    double J = 0.0;
    for (int step = 0; step < steps; step++) {
        double logp[TOY_PARAMS], penalized[TOY_PARAMS], value[TOY_STATES], grad[TOY_PARAMS];
        toy_log_policy(logp, theta);
        for (int e = 0; e < TOY_PARAMS; e++) penalized[e] = reward[e] - beta * (logp[e] - logp_ref[e]);
        J = toy_solve(value, grad, logp, penalized);
        for (int e = 0; e < TOY_PARAMS; e++) theta[e] += rate * grad[e];
    }
    return J;
}

// Four possible answers; every logarithm is a multiple of ln 2.
enum { KL_ANSWERS = 4 };
static const double example_pi[KL_ANSWERS] = {0.5, 0.25, 0.125, 0.125};
static const double example_ref[KL_ANSWERS] = {0.25, 0.125, 0.5, 0.125};

static void lesson_8_estimators(const double* logp, const double* logp_ref) {
    double derivative, mean[4], variance[4];
    printf("1. Four possible answers\n\n   answer     pi  pi_ref        L       k1       k2       k3\n");
    for (int i = 0; i < KL_ANSWERS; i++) {
        double L = logp[i] - logp_ref[i];
        printf("   %6d  %5.3f  %6.3f  %7.4f", i + 1, example_pi[i], example_ref[i], L);
        for (int k = 1; k <= 3; k++) printf("  %7.4f", kl_estimate(&derivative, L, k));
        printf("\n");
    }
    for (int k = 1; k <= 3; k++) mean[k] = kl_moments(&variance[k], logp, logp_ref, KL_ANSWERS, 1.0, k);
    printf("   mean over pi                     %7.4f  %7.4f  %7.4f\n"
           "   variance                         %7.4f  %7.4f  %7.4f\n\n"
           "   exact: KL(pi||pi_ref) = 1/2 ln 2 + 1/4 ln 2 - 1/8 ln 4 = 1/2 ln 2 = %.4f\n"
           "          KL(pi_ref||pi) = -1/4 ln 2 - 1/8 ln 2 + 1/2 ln 4 = 5/8 ln 2 = %.4f\n"
           "   KL is not symmetric. k1 and k3 are right on average, k2 is not; k1 is below\n"
           "   0 for answer 3. By hand, k3 of answer 1: 1/2 - 1 + ln 2 = 0.1931.\n\n",
           mean[1], mean[2], mean[3], variance[1], variance[2], variance[3],
           exact_kl(logp, logp_ref, KL_ANSWERS), exact_kl(logp_ref, logp, KL_ANSWERS));
}

// How far the expected gradient of a use is from that of each KL on the 27 answers of chapter 4, with the
// log-ratio of the whole answer; and from the first KL's when the estimator is applied token by token.
static void print_kl_use(int use) {
    double theta[TOY_PARAMS], logp[TOY_PARAMS], logp_ref[TOY_PARAMS], ratio[TOY_PARAMS], table[TOY_PARAMS];
    double exact[TOY_PARAMS], other[TOY_PARAMS], whole[TOY_PARAMS], tokens[TOY_PARAMS], value[TOY_STATES];
    double weight[TOY_ANSWERS], weight_other[TOY_ANSWERS];
    char text[3][16];
    toy_fill(theta, TOY_PARAMS, 2, 1.0);
    toy_log_policy(logp_ref, theta);
    toy_fill(theta, TOY_PARAMS, 1, 1.0);
    toy_log_policy(logp, theta);
    for (int e = 0; e < TOY_PARAMS; e++) {
        ratio[e] = logp[e] - logp_ref[e];
        table[e] = kl_score_weight(ratio[e], use);
    }
    for (int y = 0; y < TOY_ANSWERS; y++) {
        weight[y] = exp(toy_sum_along(logp, y)) * kl_score_weight(toy_sum_along(ratio, y), use);
        weight_other[y] = -exp(toy_sum_along(logp_ref, y));    // KL(pi_ref||pi) is -sum pi_ref log pi + ...
    }
    toy_solve(value, exact, logp, ratio);    // KL is the expected sum of log-ratios, so Bellman's way applies
    toy_answer_gradient(other, logp, weight_other);
    toy_answer_gradient(whole, logp, weight);
    toy_rollout_gradient(tokens, logp, table, NULL, 1.0, kl_uses[use].in_loss ? CREDIT_OWN : CREDIT_TO_GO);
    toy_difference_text(text[0], toy_relative_error(whole, exact, TOY_PARAMS), 1e-12);
    toy_difference_text(text[1], toy_relative_error(whole, other, TOY_PARAMS), 1e-12);
    toy_difference_text(text[2], toy_relative_error(tokens, exact, TOY_PARAMS), 1e-12);
    printf("   %-18s %12s %16s %18s\n", kl_uses[use].name, text[0], text[1], text[2]);
}

static void lesson_8_gradients(void) {
    printf("2. In the reward or in the loss: the expected gradient on chapter 4's 27 answers\n\n"
           "   off by             KL(pi||pi_ref)   KL(pi_ref||pi)   the first, per token\n");
    for (int use = 0; use < KL_USES; use++) print_kl_use(use);
    printf("\n   off by: |g - exact| / |exact|; 1 = no gradient at all. k1 belongs in the\n"
           "   reward, in the loss it does nothing. k2 is exact in the loss, but per token\n"
           "   does not see where a token leads. k3 in the loss (GRPO) is exact for the\n"
           "   other KL; in the reward it is neither. D3's signs: part 4.\n\n");
}

static void lesson_8_optimum(void) {
    const double betas[] = {4.0, 1.0, 0.25};
    double reward[TOY_PARAMS], theta_ref[TOY_PARAMS], logp_ref[TOY_PARAMS];
    toy_fill(theta_ref, TOY_PARAMS, 2, 1.0);
    toy_log_policy(logp_ref, theta_ref);
    toy_rewards(reward);
    printf("3. Where it leads: ascent on the exact J of the 27 answers, from pi_ref\n\n"
           "   beta     E[r]       KL        J   beta log Z  |pi-pi*| / |pi*|\n");
    for (int i = 0; i < 3; i++) {
        double theta[TOY_PARAMS], logp[TOY_PARAMS], p[TOY_ANSWERS], best[TOY_ANSWERS], beta = betas[i];
        char text[16];
        memcpy(theta, theta_ref, sizeof theta);
        double J = toy_ascend(theta, logp_ref, reward, beta, 2.0 / (0.3 + beta), 20000);
        toy_log_policy(logp, theta);
        toy_probabilities(p, logp);
        double log_Z = toy_optimum(best, logp_ref, reward, beta), passed = toy_pass_rate(p);
        toy_difference_text(text, toy_relative_error(p, best, TOY_ANSWERS), 1e-9);
        printf("   %4.2f  %7.4f  %7.4f  %7.4f  %11.4f  %15s\n", beta, passed, (passed - J) / beta, J,
               beta * log_Z, text);
    }
    printf("\n   pi* = pi_ref exp(r/beta) / Z, Z so that it adds up to 1. J(pi) = beta log Z\n"
           "   - beta KL(pi||pi*): its peak is beta log Z. A small beta buys reward with KL.\n\n");
}

static void lesson_8_signs(const double* logp, const double* logp_ref) {
    const double *side[2] = {logp, logp_ref}, sign[2] = {-1.0, 1.0};       // exchanged, L changes its sign
    double variance;
    printf("4. D3 prints k1 = -L and k3 = exp(L) - 1 - L, with the same L. Their means:\n\n"
           "                       k1       k3   the KL they estimate\n");
    for (int i = 0; i < 2; i++)
        printf("   %-17s  %7.4f  %7.4f   %.4f\n", i ? "samples of pi_ref" : "samples of pi",
               kl_moments(&variance, side[i], side[1 - i], KL_ANSWERS, sign[i], 1),
               kl_moments(&variance, side[i], side[1 - i], KL_ANSWERS, sign[i], 3),
               exact_kl(side[i], side[1 - i], KL_ANSWERS));
    printf("\n   Right for samples of pi_ref. Rollouts are samples of pi: take -L for its L.\n"
           "   In the reward, as in D3's code, its k1 pays for drift (part 2, off by 2).\n"
           "   And the code takes the mean over the n tokens of an answer, the formula their\n"
           "   sum: n times cheaper, so that long answers drift almost for free.\n\n");
}

// ---- experiment 2 of D3: KL by hand ----------------------------------------------------------------------
//
// D3: "with little drift the two are close; with more, k1 clearly fluctuates more from sample to sample,
// while k3 stays >= 0". The first table has D3's own lines, the second the case of training.
enum { NOISES = 6 };
static const double noises[NOISES] = {0.1, 0.5, 1.0, 2.0, 3.0, 4.0};

// One row. logits (n,V) are the reference's at the n sampled tokens ids of a text; the policy has noise * a
// normal number added to each. P draws the tokens, Q is the other one. from_policy = 0: P is the reference,
// k1 and k3 are the means over the text's own tokens; 1: P is the policy, they are its exact means over all V
// tokens of each place. dev is exact in both cases. Returns KL(P||Q) per token.
static double print_kl_row(const float* logits, const int* ids, int n, int V, double noise, int from_policy,
                           uint64_t seed) {
    double *ref = allocate((size_t)V, sizeof(double)), *pi = allocate((size_t)V, sizeof(double));
    double *p = from_policy ? pi : ref, *q = from_policy ? ref : pi;
    double exact = 0.0, mean[2] = {0}, square[2] = {0};
    for (int i = 0; i < n; i++) {
        Rng rng = random_stream(seed, 4, (uint64_t)i);
        for (int v = 0; v < V; v++) {
            ref[v] = logits[(size_t)i * V + v];
            pi[v] = ref[v] + noise * random_normal(&rng);
        }
        toy_log_softmax(ref, ref, V);
        toy_log_softmax(pi, pi, V);
        exact += exact_kl(p, q, V) / n;
        for (int v = 0; v < V; v++) {
            float k[2], logp = (float)p[v], logq = (float)q[v];
            kl_k1(&k[0], &logp, &logq, 1);
            kl_k3(&k[1], &logp, &logq, 1);
            for (int e = 0; e < 2; e++) {
                mean[e] += (from_policy ? exp(p[v]) : v == ids[i]) * k[e] / n;
                square[e] += exp(p[v]) * k[e] * k[e] / n;
            }
        }
    }
    printf("   %5.1f%14.4g%12.4g%12.4g", noise, exact, mean[0], mean[1]);
    for (int e = 0; e < 2; e++) printf("%12.4g", sqrt(fmax(0.0, square[e] - exact * exact)));
    printf("\n");
    free(ref), free(pi);
    return exact;
}

// text: a question, `prompt` tokens, and an answer; sampled = 1 when m, the reference, wrote the answer.
static void experiment_2(Model* m, const Tokens* text, int prompt, int sampled, uint64_t seed) {
    static const double betas[] = {0.001, 0.01, 0.1};
    double kl[NOISES];
    int n = 0, V = m->config.vocab_size, *ids = allocate((size_t)text->length, sizeof(int));
    float* logits = all_logits(m, text->ids, text->length);
    for (int t = prompt; t < text->length; t++) {      // the row before a token is about it (chapter 3)
        if (!text->mask[t]) continue;
        memmove(logits + (size_t)n * V, logits + (size_t)(t - 1) * V, (size_t)V * sizeof(float));
        ids[n++] = text->ids[t];
    }
    printf("The reference is the model, the policy the model with noise on its logits, as if\n"
           "training had moved it. P draws the tokens, Q is the other; L = log P - log Q,\n"
           "k1 = L, k3 = exp(-L) - 1 + L, means over %d places; dev: the standard deviation\n"
           "of one token's k1 and k3 when P draws it.\n", n);
    for (int from_policy = 0; from_policy < 2; from_policy++) {
        printf("\n%s\n\n", from_policy ? "2. As in training, P = policy: means over all tokens it may draw."
                            : sampled   ? "1. D3's own lines, P = reference: it wrote this text."
                                        : "1. D3's own lines, P = reference. But nobody sampled this text.");
        printf("   noise       KL(P||Q)          k1          k3      dev k1      dev k3\n");
        for (int i = 0; i < NOISES; i++)
            kl[i] = print_kl_row(logits, ids, n, V, noises[i], from_policy, seed);
    }
    printf("\n3. The KL budget: r - beta KL of 2. for a right answer, r = 1, with the sum over\n"
           "   %d tokens (the formula) or their mean (D3's code).\n\n   noise          ", n);
    for (int i = 0; i < NOISES; i++) printf("%9.1f", noises[i]);
    for (int b = 0; b < 6; b++) {
        printf("\n   %s  beta %-5g", b < 3 ? "sum " : "mean", betas[b % 3]);
        for (int i = 0; i < NOISES; i++) printf("%9.4f", 1.0 - betas[b % 3] * kl[i] * (b < 3 ? n : 1));
    }
    printf("\n\nTake away: an estimator belongs to the distribution that drew the samples. And\n"
           "beta means nothing before one has said sum or mean: here they differ %d-fold.\n", n);
    free(logits), free(ids);
}

static void lesson_8(int more) {
    double logp[KL_ANSWERS], logp_ref[KL_ANSWERS];
    (void)more;
    for (int i = 0; i < KL_ANSWERS; i++) {
        logp[i] = log(example_pi[i]);
        logp_ref[i] = log(example_ref[i]);
    }
    printf("LESSON 8. The objective: reward minus beta KL (D3 section 5)\n\n"
           "   Question  How is a policy that chases reward held near the model it started\n"
           "             from, and how is \"near\" measured from samples?\n"
           "   Formula   J(pi) = E[r(x,y)] - beta KL(pi||pi_ref)\n"
           "             KL(P||Q) = sum over y of P(y) log(P(y)/Q(y)). From one y of pi,\n"
           "             with L = log pi(y|x) - log pi_ref(y|x):\n"
           "             k1 = L      k2 = L^2 / 2      k3 = exp(-L) - 1 + L\n"
           "   Symbols   x prompt, y answer, r reward, pi the policy, E the mean over its\n"
           "             answers; pi_ref the reference model; beta the price of drift\n\n");
    lesson_8_estimators(logp, logp_ref);
    lesson_8_gradients();
    lesson_8_optimum();
    lesson_8_signs(logp, logp_ref);
    printf("Take away: an estimator belongs to the distribution that drew the samples, and\n"
           "an unbiased estimate is not an unbiased gradient.\n");
}

/* ==========================================================================================================
 * CHAPTER 9. Losses                                                            (D3 section 6, D1 on the loss)
 *
 * Question: we have log-probabilities and an advantage, a demonstration or a preference. What number do we
 * minimize, and what does its gradient do to each token?
 *
 * The idea. Every loss of the policy ends in one number per token, d(loss)/d(logp): negative means "make
 * this token more likely", positive "less likely", 0 "leave it alone". The chain rule does the rest.
 *
 * Policy gradient (REINFORCE; D1, nanochat)
 *     L = - sum over all tokens t of w_t A_t log pi(y_t | x, y_<t)             d/dlogp_t = - w_t A_t
 *   The value of this L means nothing, it can go up while the policy improves. Only its gradient is used.
 *
 * What one token counts is computed once, by token_weights() in train_gpt.c, section 12:
 *
 *     w_t                            here                TRL loss_type  verl loss_agg_mode       used by
 *     1 / scored tokens              NORM_TOKEN_MEAN     bnpo, dapo     token-mean               D1, DAPO
 *     1 / (K * tokens of its answer) NORM_SEQUENCE_MEAN  grpo           seq-mean-token-mean      GRPO
 *     1 / K                          NORM_SEQUENCE_SUM   -              seq-mean-token-sum       RLOO
 *     1 / (K * longest possible)     NORM_CONSTANT       dr_grpo        seq-mean-token-sum-norm  Dr. GRPO
 *
 *   With the second a token of a long answer counts less than one of a short answer. (From here on L is that
 *   of one token: the loss is the sum of the w_t L, and each derivative gets w_t as a factor.)
 *
 * Clipping (PPO)
 *     rho = pi/pi_old = exp(logp - logp_old)
 *     L = - min( rho A, clip(rho, 1 - clip_low, 1 + clip_high) A )             d/dlogp = -rho A, 0 if clipped
 *   For taking several steps on rollouts of an older policy. The minimum is pessimistic: it stops paying
 *   once a token has moved far enough in the direction that A asks for, and never stops correcting a token
 *   that moved the wrong way. On-policy (rho = 1) its gradient is the policy gradient: D1 needs no clip.
 *
 * Two relatives of clipping, for the same purpose
 *     GSPO   s = exp( mean over the answer's tokens of logp - logp_old ), clipped like rho: an answer as a
 *            whole, as its reward is
 *     CISPO  L = - stop(clip(rho)) A logp                                      d/dlogp = -clip(rho) A
 *            stop: held constant. It bounds the weight of a token that changes much, and keeps its gradient
 *
 * The value model (PPO) predicts the reward at every token, so that GAE (chapters 2 and 7) can tell at which
 * token things went better or worse than expected. It learns by squared error from what came after:
 *     L = 1/2 (V - target)^2,  target = A + V_old                              d/dV = V - target
 *
 * Supervised fine-tuning (SFT, instruction tuning)
 *     L_SFT(theta) = - E over (x, y*) ~ D of [ sum_t log pi_theta(y*_t | x, y*_<t) ]
 *   y* is given, not sampled. It is the policy gradient with advantage 1 everywhere: praise for each token of
 *   somebody else's answer, and never a reproach (loss_sft stands beside token_weights).
 *
 * Preferences: Bradley-Terry and the reward model (RLHF)
 *     y_w is the answer that was preferred, y_l the one that lost; phi are the reward model's parameters
 *     P(y_w beats y_l | x) = sigma( r(x,y_w) - r(x,y_l) ),  sigma(z) = 1 / (1 + exp(-z))
 *     L_RM(phi) = - E[ log sigma( r_phi(x,y_w) - r_phi(x,y_l) ) ]      d/dr_w = -(1 - P),  d/dr_l = +(1 - P)
 *   Only differences count: r + constant has the same loss.
 *
 * Three ways to use a reward: RL (chapters 7 to 10), and
 *   Rejection sampling, best of N
 *     y+ = the y_i with the largest r(x, y_i),  i = 1..N,  y_i ~ pi_ref(.|x);  then SFT on y+
 *   DPO (direct preference optimization)
 *     Chapter 8's optimum pi* = pi_ref exp(r/beta)/Z, solved for r:  r = beta log(pi* / pi_ref) + beta log Z.
 *     Put into Bradley-Terry, Z(x) is in both rewards and cancels, and the policy itself is the reward model:
 *         L_DPO(theta) = - E[ log sigma( beta log(pi(y_w|x) / pi_ref(y_w|x))
 *                                      - beta log(pi(y_l|x) / pi_ref(y_l|x)) ) ]
 *     beta log(pi/pi_ref) is called the implicit reward. d/dlogp = -+beta (1 - P) for each token of y_w, y_l.
 *
 * Traps.
 *   - D3 says that RL, rejection sampling and DPO optimize the same objective. The lesson checks it on the
 *     27 answers. DPO reaches pi* from preferences alone, given all pairs and annotators as in Bradley-Terry.
 *     Best-of-N is EXACTLY pi_ref exp(r/beta)/Z when the reward has two values, with another beta for every
 *     question. With more values it is another family of policies.
 *   - DPO does not fix the level: both log-probs may fall, as long as the rejected one falls more.
 * ======================================================================================================== */

// The losses down to loss_value() go through n tokens, flat, and return the loss. dlogp (n) out,
// d(loss)/d(logp); logp, log_ratio (n) in nats; adv (n) the advantage of each token, a constant; w (n) what
// each token counts: where it is 0 the derivative is 0 and nothing else is read, padding may hold anything.

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

// log(pi / pi_old) of each token (PPO). out, logp, logp_old, mask (K,T1); 0 where the mask is 0.
void token_log_ratio(float* out, const float* logp, const float* logp_old, const int* mask, int K, int T1) {
    for (int i = 0; i < K * T1; i++) out[i] = mask[i] ? logp[i] - logp_old[i] : 0.0f;
}

// GSPO: the mean of these over the answer, for each of its tokens. Zheng et al. (2025), equation 7.
void sequence_log_ratio(float* out, const float* logp, const float* logp_old, const int* mask, int K,
                        int T1) {
    token_log_ratio(out, logp, logp_old, mask, K, T1);
    for (int k = 0; k < K; k++) {
        float mean = (float)masked_mean(out + k * T1, mask + k * T1, T1);
        for (int i = k * T1; i < (k + 1) * T1; i++) out[i] = mask[i] ? mean : 0.0f;
    }
}

// x held between low and high; a NaN stays a NaN.
static double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

// Does the clip hold this token? Only where it has gone far enough where its advantage asks it to go.
static int is_clipped(double ratio, double adv, double clip_low, double clip_high) {
    return (adv > 0.0 && ratio > 1.0 + clip_high) || (adv < 0.0 && ratio < 1.0 - clip_low);
}

// PPO's clipped loss:  L = - min( rho A, clip(rho, 1 - clip_low, 1 + clip_high) A ),  rho = exp(log_ratio).
// With sequence_log_ratio() it is GSPO's: there each token's weight is 1/(K |y|) and ds/dlogp_t = s/|y|, so
// that the flat derivative -w s A is exact. clip_low, clip_high: 0.2 and 0.2 (PPO), 0.2 and 0.28 (DAPO).
// Exactly on a bound the gradient is the unclipped one. Finite for log-ratios up to 6000 (bounded_exp).
// Schulman et al. (2017), equation 7; Yu et al. (2025) for two bounds.
double loss_clip(float* dlogp, const float* log_ratio, const float* adv, const float* w, int n,
                 float clip_low, float clip_high) {
    double loss = 0.0, derivative;
    for (int i = 0; i < n; i++) {
        dlogp[i] = 0.0f;
        if (w[i] == 0.0f) continue;
        double ratio = bounded_exp(&derivative, log_ratio[i]);
        int clipped = is_clipped(ratio, adv[i], clip_low, clip_high);
        loss -= w[i] * (clipped ? clamp(ratio, 1.0 - clip_low, 1.0 + clip_high) : ratio) * adv[i];
        if (!clipped) dlogp[i] = (float)(-w[i] * derivative * adv[i]);
    }
    return loss;
}

// CISPO:  L = - stop(clip(rho)) A logp. The clipped ratio is a weight, held constant: no token's gradient is
// ever switched off. MiniMax (2025), equation 4.
double loss_cispo(float* dlogp, const float* logp, const float* log_ratio, const float* adv, const float* w,
                  int n, float clip_low, float clip_high) {
    double loss = 0.0, derivative;
    for (int i = 0; i < n; i++) {
        dlogp[i] = 0.0f;
        if (w[i] == 0.0f) continue;
        double weight = w[i] * clamp(bounded_exp(&derivative, log_ratio[i]), 1.0 - clip_low, 1.0 + clip_high);
        loss -= weight * adv[i] * logp[i];
        dlogp[i] = (float)(-weight * adv[i]);
    }
    return loss;
}

// PPO's value loss: half the squared error of the value or, if it is larger, that of the value held within
// `clip` of its older self; clip <= 0: the plain squared error. dvalue (n) out: d(loss)/d(value); value,
// value_old, target (n) in units of the reward. Schulman's PPO code (OpenAI baselines); Ouyang et al. (2022).
double loss_value(float* dvalue, const float* value, const float* value_old, const float* target,
                  const float* w, int n, float clip) {
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
static double bradley_terry(double* derivative, double margin) {
    *derivative = -sigmoid(-margin);
    return (margin > 0.0 ? 0.0 : -margin) + log1p(exp(-fabs(margin)));
}

// Reward model on one pair of scores r(x,y_w), r(x,y_l): -log P(chosen beats rejected). dchosen, drejected
// out: d(loss)/d(score), one float each, opposite and equal. Equal scores give log 2 = 0.6931. Finite for all
// finite scores. Bradley and Terry (1952); Ouyang et al. (2022).
double loss_reward_model(float* dchosen, float* drejected, float chosen, float rejected) {
    double derivative, loss = bradley_terry(&derivative, (double)chosen - rejected);
    *dchosen = (float)derivative;
    *drejected = (float)-derivative;
    return loss;
}

// DPO on one pair: the reward model's loss on the implicit rewards beta log(pi/pi_ref). chosen, rejected: log
// pi(y|x) of the two answers, summed over tokens, nats; ref_...: under pi_ref. dchosen, drejected out:
// d(loss)/d(log pi(y|x)), one float each. beta 0: loss log 2, gradient 0. Rafailov et al. (2023), equation 7.
double loss_dpo(float* dchosen, float* drejected, float chosen, float rejected, float ref_chosen,
                float ref_rejected, float beta) {
    double margin = beta * (((double)chosen - ref_chosen) - ((double)rejected - ref_rejected));
    double derivative, loss = bradley_terry(&derivative, margin);
    *dchosen = (float)(beta * derivative);
    *drejected = (float)(-beta * derivative);
    return loss;
}

// Rejection sampling's choice: the first of the largest rewards. A NaN never wins. -1: nothing to choose.
int best_of_n(const float* reward, int n) {
    int best = -1;
    for (int i = 0; i < n; i++)
        if (!isnan(reward[i]) && (best < 0 || reward[i] > reward[best])) best = i;
    return best;
}

// The distribution of the best of N answers drawn from p_ref: all N are at or below a reward level with
// probability (at or below)^N, strictly below it with (below)^N. The difference is the level's share.
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

// Expected loss_dpo and its gradient by the 39 logits: a pair of different answers is drawn from pi_ref, and
// an annotator who knows the reward prefers i to j with probability sigma(r_i - r_j).
static double toy_dpo_gradient(double* grad, const double* logp, const double* logp_ref, const double* reward,
                               double beta) {
    double weight[TOY_ANSWERS] = {0}, loss = 0.0, total = 0.0, p[TOY_ANSWERS];
    float all[TOY_ANSWERS], all_ref[TOY_ANSWERS], dchosen, drejected, b = (float)beta;
    toy_probabilities(p, logp_ref);
    for (int y = 0; y < TOY_ANSWERS; y++) {
        all[y] = (float)toy_sum_along(logp, y);
        all_ref[y] = (float)toy_sum_along(logp_ref, y);
    }
    for (int i = 0; i < TOY_ANSWERS; i++) {
        for (int j = 0; j < TOY_ANSWERS; j++) {
            if (i == j) continue;
            double chance = p[i] * p[j] * sigmoid(reward[i] - reward[j]);
            loss += chance * loss_dpo(&dchosen, &drejected, all[i], all[j], all_ref[i], all_ref[j], b);
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
static void toy_train_dpo(double* theta, const double* logp_ref, const double* reward, double beta,
                          int steps) {
    double velocity[TOY_PARAMS] = {0};
    for (int step = 0; step < steps; step++) {
        double logp[TOY_PARAMS], grad[TOY_PARAMS];
        toy_log_policy(logp, theta);
        toy_dpo_gradient(grad, logp, logp_ref, reward, beta);
        for (int e = 0; e < TOY_PARAMS; e++) {
            velocity[e] = 0.9 * velocity[e] - 3.0 / (beta * beta) * grad[e];
            theta[e] += velocity[e];
        }
    }
}

// ---- D2's four answers on one blackboard -----------------------------------------------------------------
//
// Four tokens, and at every place the same logits (3, 2, 1, 1) ln 2, so that all can be done by hand:
// log-sum-exp = ln(8 + 4 + 2 + 2) = ln 16, probabilities 1/2, 1/4, 1/8, 1/8. The first token is the prompt; 3
// stands for the end, as in nanochat not scored (our rollouts score theirs), or for padding.
enum { BOARD_K = 4, BOARD_T = 4, BOARD_T1 = 3, BOARD_V = 4 };
enum { BOARD_ROWS = BOARD_K * BOARD_T, BOARD_N = BOARD_K * BOARD_T1 };

static const char* const board_text[BOARD_K] = {"\\boxed{83}", "The correct answer is \\boxed{83}",
                                                "The final answer is 83", "We get \\boxed{38}"};
static const int board_ids[BOARD_ROWS] = {2, 0, 0, 3, 2, 1, 0, 0, 2, 0, 1, 3, 2, 0, 3, 3};
static const int board_mask[BOARD_ROWS] = {0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 0, 0, 1, 0, 0};

typedef struct {
    float logits[BOARD_ROWS * BOARD_V], logp[BOARD_N], total[BOARD_K], reward[BOARD_K], adv[BOARD_K];
    float token_adv[BOARD_N], w[BOARD_N], dlogp[BOARD_N], dlogits[BOARD_ROWS * BOARD_V];
    int mask[BOARD_N];                                                                          // shifted
    double loss;
} Board;

// All that one update of nanochat computes, in its order. By hand: ln 1/2 for token 0, ln 1/4 for token 1;
// the verifier reads D2's texts; the mean reward is 1/2; eight tokens are scored, each counts 1/8. The last
// layer of the model (train_gpt.c, section 4) has d logp/d logit_i = [i = token] - p_i in each row.
static Board board_compute(void) {
    const float row[BOARD_V] = {3, 2, 1, 1};
    float d[BOARD_ROWS] = {0}, logp[BOARD_ROWS];
    int target[BOARD_ROWS] = {0}, scored[BOARD_ROWS];
    Board b;
    for (int i = 0; i < BOARD_ROWS * BOARD_V; i++) b.logits[i] = row[i % BOARD_V] * logf(2.0f);
    token_logprobs(b.logp, b.logits, board_ids, BOARD_K, BOARD_T, BOARD_V);
    shift_mask(b.mask, board_mask, BOARD_K, BOARD_T);
    sequence_logprobs(b.total, b.logp, b.mask, BOARD_K, BOARD_T1);
    for (int k = 0; k < BOARD_K; k++) b.reward[k] = reward_boxed(board_text[k], "83");
    advantages_centered(b.adv, b.reward, BOARD_K);
    broadcast_advantages(b.token_adv, b.adv, b.mask, BOARD_K, BOARD_T1);
    token_weights(b.w, b.mask, BOARD_K, BOARD_T1, NORM_TOKEN_MEAN, 0);
    b.loss = loss_policy_gradient(b.dlogp, b.logp, b.token_adv, b.w, BOARD_N);
    for (int i = 0; i < BOARD_ROWS; i++) {
        int predicts = i % BOARD_T < BOARD_T1;             // the row of the last token has no target
        scored[i] = i;
        target[i] = predicts ? board_ids[i + 1] : 0;
        d[i] = predicts ? b.dlogp[i / BOARD_T * BOARD_T1 + i % BOARD_T] : 0.0f;
    }
    logprob_forward(logp, b.dlogits, b.logits, target, scored, BOARD_ROWS, BOARD_V);
    logprob_backward(b.dlogits, d, target, scored, BOARD_ROWS, BOARD_V);
    return b;
}

static void lesson_9_weights(void) {
    static const char* const names[] = {"token mean", "sequence mean", "sequence sum", "constant", "SFT"};
    float w[BOARD_N], dlogp[BOARD_N];
    Board b = board_compute();
    printf("1. Policy gradient and SFT on D2's four answers (./rl lesson chain): 2, 3, 2, 1\n"
           "   tokens, log pi(y) = -2, -4, -3, -1 times ln 2, A = 1/2, 1/2, -1/2, -1/2\n\n"
           "                     d/dlogp of a token of\n"
           "   weights              r1       r2       r3       r4      loss\n");
    for (int row = 0; row < 5; row++) {
        int sft = row > NORM_CONSTANT;
        token_weights(w, b.mask, BOARD_K, BOARD_T1, sft ? NORM_TOKEN_MEAN : row, BOARD_T1);
        double loss = sft ? loss_sft(dlogp, b.logp, w, BOARD_N)
                          : loss_policy_gradient(dlogp, b.logp, b.token_adv, w, BOARD_N);
        printf("   %-14s  %7.4f  %7.4f  %7.4f  %7.4f  %8.4f\n", names[row], dlogp[0], dlogp[BOARD_T1],
               dlogp[2 * BOARD_T1], dlogp[3 * BOARD_T1], loss);
    }
    printf("\n   By hand: w = 1/8; 1/(4 * tokens); 1/4; 1/(4 * 3); the sum of A log pi(y) is\n"
           "   -ln 2, so the first loss is ln 2 / 8. SFT has A = 1 and the loss 10 ln 2 / 8;\n"
           "   its d/dlogp is never positive: it cannot say what not to do.\n\n");
}

static void lesson_9_clip(void) {
    const float ratios[] = {0.5f, 1.0f, 1.5f}, w[1] = {1.0f};
    printf("2. PPO's clip to [0.8, 1.2]: minus the smaller of two products\n\n"
           "    A   rho   rho A   clip(rho) A    loss   d/dlogp\n");
    for (int sign = 1; sign >= -1; sign -= 2)
        for (int i = 0; i < 3; i++) {
            float dlogp[1], adv[1] = {(float)sign}, log_ratio[1] = {logf(ratios[i])};
            double loss = loss_clip(dlogp, log_ratio, adv, w, 1, 0.2f, 0.2f);
            printf("   %+d  %4.1f  %6.1f  %12.1f  %6.1f  %8.1f   %s\n", sign, ratios[i], sign * ratios[i],
                   sign * clamp(ratios[i], 0.8, 1.2), loss, dlogp[0],
                   i == 1 ? "on-policy: -A" : dlogp[0] == 0.0f ? "far enough: stop" : "wrong way: push");
        }
    printf("\n");
}

static void lesson_9_pairs(void) {
    const float pair[][2] = {{2, 0}, {102, 100}, {0, 2}};
    float dchosen, drejected;
    printf("3. Reward model and DPO on one pair, P = sigma(r_w - r_l)\n\n"
           "   r_w   r_l        P     loss   d/dr_w   d/dr_l\n");
    for (int i = 0; i < 3; i++) {
        double loss = loss_reward_model(&dchosen, &drejected, pair[i][0], pair[i][1]);
        printf("   %3.0f   %3.0f   %6.4f   %6.4f  %7.4f  %7.4f\n", pair[i][0], pair[i][1],
               sigmoid((double)pair[i][0] - pair[i][1]), loss, dchosen, drejected);
    }
    double loss = loss_dpo(&dchosen, &drejected, -12.0f, -15.5f, -11.0f, -14.0f, 0.1f);
    printf("\n   Only the difference counts. DPO, beta 0.1, log pi = -12 and -15.5, log pi_ref\n"
           "   = -11, -14: r_w - r_l = 0.1 (-1 + 1.5) = 0.05, loss %.4f, d/dlog pi %.4f\n"
           "   and %.4f: -+0.1 (1 - P). Both answers have become less likely, no matter.\n\n",
           loss, dchosen, drejected);
}

static void lesson_9_three_ways(void) {
    static const char* const ways[] = {"best of 4", "best of 16", "RL, lesson 8", "DPO"};
    double theta_ref[TOY_PARAMS], logp_ref[TOY_PARAMS], reward[TOY_PARAMS], p_ref[TOY_ANSWERS];
    double p[TOY_ANSWERS], best[TOY_ANSWERS];
    toy_fill(theta_ref, TOY_PARAMS, 2, 1.0);
    toy_log_policy(logp_ref, theta_ref);
    toy_probabilities(p_ref, logp_ref);
    toy_rewards(reward);
    double passed_ref = toy_pass_rate(p_ref);
    printf("4. RL, rejection sampling and DPO on chapter 4's 27 answers: one policy? (D3)\n\n"
           "                     beta     E[r]  |pi-pi*| / |pi*|\n");
    for (int way = 0; way < 4; way++) {
        double theta[TOY_PARAMS], logp[TOY_PARAMS], beta = 1.0;
        char text[16];
        memcpy(theta, theta_ref, sizeof theta);
        if (way == 2) toy_ascend(theta, logp_ref, reward, beta, 1.5, 20000);
        if (way == 3) toy_train_dpo(theta, logp_ref, reward + TOY_LAST, beta, 400);
        toy_log_policy(logp, theta);
        toy_probabilities(p, logp);
        if (way < 2) toy_best_of_n(p, p_ref, reward + TOY_LAST, way ? 16 : 4);
        double passed = toy_pass_rate(p);
        if (way < 2) beta = 1.0 / log(passed / (1.0 - passed) / (passed_ref / (1.0 - passed_ref)));
        toy_optimum(best, logp_ref, reward, beta);
        toy_difference_text(text, toy_relative_error(p, best, TOY_ANSWERS), way < 2 ? 1e-12 : 1e-6);
        printf("   %-12s  %7.4f  %7.4f  %15s\n", ways[way], beta, passed, text);
    }
    printf("\n   pi_ref passes %.4f, the best of 4 1 - (1 - %.4f)^4 = 0.7590. It is pi*\n"
           "   for beta = 1 / log(odds / odds of pi_ref), odds = E[r] / (1 - E[r]): another\n"
           "   beta for every question. DPO has seen nothing but pairs. Its implicit reward,\n"
           "   log(pi/pi_ref), of 021 and 020: %.4f and %.4f, 1 and 0 up to a constant.\n\n",
           passed_ref, passed_ref, log(p[7] / p_ref[7]), log(p[6] / p_ref[6]));
}

// What no document asks for: the two relatives of the clip, and the clip of the value.
static void lesson_9_relatives(void) {
    const float old[3] = {-2.0f, -1.0f, -0.5f}, logp[3] = {-1.5f, -1.0f, -0.6f}, one[3] = {1, 1, 1};
    const int mask[3] = {1, 1, 1};
    float token[3], answer[3], clip[3], gspo[3], cispo[3], value[1];
    token_log_ratio(token, logp, old, mask, 1, 3);
    sequence_log_ratio(answer, logp, old, mask, 1, 3);
    loss_clip(clip, token, one, one, 3, 0.2f, 0.2f);
    loss_clip(gspo, answer, one, one, 3, 0.2f, 0.2f);
    loss_cispo(cispo, logp, token, one, one, 3, 0.2f, 0.2f);
    double loss = loss_value(value, &(float){0.6f}, &(float){0.3f}, one, one, 1, 0.2f);
    printf("5. d/dlogp of three tokens with log-ratios 0.5, 0, -0.1, A = 1, bounds 0.2\n\n"
           "   PPO's clip  %7.4f  %7.4f  %7.4f   exp(0.5) = 1.6487 is held: 0\n"
           "   GSPO        %7.4f  %7.4f  %7.4f   exp(0.4 / 3) for all\n"
           "   CISPO       %7.4f  %7.4f  %7.4f   min(1.6487, 1.2)\n\n"
           "   PPO's value clip, 0.2: V 0.6 was 0.3, target 1: it counts as 0.5. The loss is\n"
           "   (1 - 0.5)^2 / 2 = %.4f, d/dV = %.1f: it has moved far enough.\n\n",
           clip[0], clip[1], clip[2], gspo[0], gspo[1], gspo[2], cispo[0], cispo[1], cispo[2], loss,
           value[0]);
}

static void lesson_9(int more) {
    printf("LESSON 9. Losses (D3 section 6, D1)\n\n"
           "   Question  What number is minimized, and what does it do to each token?\n"
           "   Formula   policy gradient  L = - sum of w A logp            d/dlogp = - w A\n"
           "             PPO's clip       L = - sum of w min(rho A, clip(rho) A)\n"
           "             SFT              L = - sum of w logp\n"
           "             reward model     L = - log sigma(r_w - r_l)\n"
           "             DPO              the same with r = beta log(pi(y|x)/pi_ref(y|x))\n"
           "   Symbols   logp = log pi of a token, A its advantage, w what it counts; rho =\n"
           "             pi/pi_old, clip(rho): held within bounds; r_w the reward of the\n"
           "             preferred answer, r_l the other's; the rest as in lessons 2 and 8\n\n");
    lesson_9_weights();
    lesson_9_clip();
    lesson_9_pairs();
    lesson_9_three_ways();
    if (more) lesson_9_relatives();
    printf("Take away: read d/dlogp. Negative: more likely, positive: less, 0: left alone.\n");
}

static void print_ints(const int* x, int n) {                      // " 2 0 0 3  "
    for (int i = 0; i < n; i++) printf(" %d", x[i]);
    printf("  ");
}

// `./rl lesson chain`: everything from chapter 3 to here on one screen.
static void lesson_chain(int more) {
    const float half = logf(0.5f), quarter = logf(0.25f);
    float k3;
    Board b = board_compute();
    (void)more;
    kl_k3(&k3, &half, &quarter, 1);
    printf("LESSON chain. D2's four answers, from logits to the gradient of the logits\n\n"
           "   Question  How do four rewards become a push on every logit?\n"
           "   Formula   loss = - sum of w A logp,  w = 1 / scored tokens,  A = r - mean(r)\n"
           "             d loss/d logit_i = - w A ([i = token] - p_i)\n"
           "   Symbols   p = softmax(logits), logp = log p[token], r reward, A advantage;\n"
           "             [i = token]: 1 for the token that was sampled, else 0\n\n"
           "   At every place the logits are (3, 2, 1, 1) ln 2: log-sum-exp = ln(8+4+2+2) =\n"
           "   ln 16, so p = 1/2, 1/4, 1/8, 1/8. Token 3 ends or pads.\n\n"
           "       ids       mask      shifted      logp where it is 1        sum   r    A\n");
    for (int k = 0; k < BOARD_K; k++) {
        printf("   r%d ", k + 1);
        print_ints(board_ids + k * BOARD_T, BOARD_T);
        print_ints(board_mask + k * BOARD_T, BOARD_T);
        print_ints(b.mask + k * BOARD_T1, BOARD_T1);
        for (int t = 0; t < BOARD_T1; t++)
            printf(b.mask[k * BOARD_T1 + t] ? " %8.4f" : "        -", b.logp[k * BOARD_T1 + t]);
        printf("  %8.4f   %.0f %4.1f\n", b.total[k], b.reward[k], b.adv[k]);
    }
    printf("\n   By hand the sums are -2, -4, -3, -1 times ln 2 = 0.6931; mean(r) = 1/2; 8\n"
           "   tokens are scored, w = 1/8; sum of A logp = (-2 - 4 + 3 + 1)/2 ln 2 = -ln 2.\n\n"
           "   loss                         %8.5f   ln 2 / 8\n"
           "   d loss/d logp, r1 and r2     %8.5f   -1/16: more likely\n"
           "   d loss/d logp, r3 and r4     %8.5f   +1/16: less likely\n"
           "   d loss/d logits, r1's first  %8.5f  %8.5f  %8.5f  %8.5f\n"
           "      token, a 0: -1/16 (1 - 1/2, -1/4, -1/8, -1/8) = -1/32, 1/64, 1/128, 1/128\n"
           "   k3 of pi 1/2, pi_ref 1/4     %8.5f   1/2 - 1 + ln 2 (lesson 8)\n\n"
           "Take away: the reward gives the sign, the mask picks the tokens, w is the size.\n"
           "What one logit of a softmax gains the others lose.\n",
           b.loss, b.dlogp[0], b.dlogp[2 * BOARD_T1], b.dlogits[0], b.dlogits[1], b.dlogits[2], b.dlogits[3],
           k3);
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
 *     5  loss = -sum of advantage x log-probs / valid tokens     chapter 9; valid: mask 1; then the mean over
 *                                                                the questions
 *     6  backward, clip the gradient, AdamW                      train_gpt.c (there: no clip, and Muon)
 *     7  throw the samples away: they came from the old policy   on-policy, D3 section 1
 *
 * What nanochat leaves out of GRPO, and why. No KL penalty and no reference model: the reward is a program.
 * (Where that errs, chapter 5, a KL term limits the damage.) No ratio and no clipping: each batch is used
 * once, by the policy that sampled it, so the ratio is exactly 1. No division by the standard deviation. What
 * is left is close to REINFORCE with a baseline, averaged over tokens as in DAPO.
 *
 * The other methods make each of these choices in their own way and differ in nothing else: there is one
 * loop, rl_step(), and a method is a row of a table: `./rl algos` prints it, `./rl train --algo NAME` runs
 * a row, docs/recipes/compare.sh runs all of them from the same model.
 *
 * The learning rate falls in a straight line from lr * init_lr_frac to 0. It is much smaller than in
 * supervised training: there every token has a right answer, here a whole rollout has one bit.
 *
 * Where things are. rl_step() works on an array of Group: a question, its K rollouts and, in arrays (K,T1),
 * all that is known about each of their tokens. Whoever owns the groups can look at them afterwards: lesson
 * 10 and ./rl trace print what the loop's own update left there. The loop, rl_train(), and setup_load(),
 * which loads the reference, stand behind the appendix.
 *
 * Traps. (1) "On-policy" is a statement about numbers. With top-k 50 the sampler is not quite the model: it
 * never draws the 51st token. The loss takes the model's own log-probabilities and ignores the difference,
 * as nanochat does: a small bias. (2) A zero-variance group, whose rewards are all equal, has advantages of
 * exactly 0 and a gradient of exactly 0 (unless a KL term or a length penalty tells its answers apart). It
 * costs its sampling and teaches nothing. (3) A reward that rises is no proof that the task is learned;
 * chapter 11 looks at questions that were never trained on.
 * ======================================================================================================== */

typedef float (*RewardFunction)(const char* response, const char* truth);

// A reward by its name. Not every reward says whether an answer is right, so a verifier stands beside it.
// `format` tells whether the answer is where the reward wants it, right or wrong.
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

// The place of `text` in a list that ends in NULL, or a complaint that shows the list.
static int choose(const char* text, const char* const* names, const char* option) {
    Text list = {0};
    for (int i = 0; names[i]; i++) {
        if (!strcmp(text, names[i])) {
            text_free(&list);
            return i;
        }
        text_printf(&list, "%s%s", !i ? "" : names[i + 1] ? ", " : " or ", names[i]);
    }
    fail(2, "there is no --%s '%s'; choose %s", option, text, list.data);
}

// The same for the `count` rows of a table, each of `size` bytes, which begin with their names.
static int choose_row(const char* text, const void* rows, int count, size_t size, const char* option) {
    const char** names = allocate((size_t)count + 1, sizeof(char*));
    for (int i = 0; i < count; i++) names[i] = *(const char* const*)((const char*)rows + (size_t)i * size);
    int row = choose(text, names, option);
    free(names);
    return row;
}

static const RewardKind* find_reward(const char* name) {
    int count = sizeof reward_kinds / sizeof *reward_kinds;
    return &reward_kinds[choose_row(name, reward_kinds, count, sizeof *reward_kinds, "reward")];
}

// What a reward says about a text. Whoever grades asks here: training, evaluation, ./rl grade.
typedef struct {
    float reward;
    int correct, found;              // by the verifier; the answer is where the reward looks, right or wrong
    char answer[MAX_ANSWER + 1];     // what stands there; "" = nothing
} Grade;

// What pays and what is right may be two functions: a reward that is hacked shows as reward without accuracy.
static Grade grade_answer(const char* text, const char* truth, const RewardKind* kind) {
    float verified = kind->verifier(text, truth);
    Grade g = {.reward = kind->reward == kind->verifier ? verified : kind->reward(text, truth)};
    g.correct = verified == 1.0f;
    g.found = kind->format(text, g.answer, sizeof g.answer);
    if (!g.found) *g.answer = 0;
    return g;
}

// A question ready for RL: its prompt, and its final answer: what stands behind GSM8K's last ####, or MATH's
// bare answer. The written solution is not used (D2 section 6), except as a demonstration in chapter 12.
typedef struct { Tokens prompt; char* truth; const char *question, *solution; } Question;
typedef struct { Question* list; int count, longest; Problems problems; } Questions;   // longest: a prompt

// Would the reward pay the data set's own answer, written where it looks? Else hardly anything can earn it.
static int is_earnable(const char* answer, const RewardKind* kind) {
    char truth[MAX_ANSWER + 1], own[2 * MAX_ANSWER + 32];
    if (!extract_truth(truth, sizeof truth, answer)) return 0;
    snprintf(own, sizeof own, "\\boxed{%s}\n#### %s", truth, truth);
    return kind->verifier(own, truth) == 1.0f;
}

// Loads a file; prompts that leave no room for `room` new tokens in the context are counted and skipped.
static Questions load_questions(const char* path, int context, int room, const RewardKind* kind) {
    Questions q = {.problems = load_problems(path)};
    int unearned = 0;
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
        const char* answer = extract_truth(truth, sizeof truth, p->answer) ? truth : p->answer;
        q.list[q.count++] = (Question){prompt, copy_text(answer), p->question, p->answer};
        q.longest = max_int(q.longest, prompt.length);
        unearned += !is_earnable(answer, kind);
    }
    if (q.count < q.problems.count)
        printf("%s: %d of %d prompts leave no room for %d new tokens in the context of %d and are skipped\n",
               path, q.problems.count - q.count, q.problems.count, room, context);
    if (unearned)
        printf("%s: %d of %d right answers are empty, too long, or nothing that the reward %s pays for as it "
               "stands\n", path, unearned, q.count, kind->name);
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
        overwrite, num_epochs, num_steps, threads, allow_overlap;
    SampleOptions sample;
    float lr, init_lr_frac, grad_clip;
    AdamOptions adam;
    uint64_t seed, data_hash;
    // what makes a method: see the table below
    const char *algo, *advantage, *ratio, *norm, *kl_estimator, *kl_in, *kl_per;
    float clip_low, clip_high, beta, gamma, lambda, value_lr, value_clip;
    int epochs_per_batch, minibatch, resample, overlong;
    // what other commands than ./rl train take: those of chapter 12, ./rl eval, grade, trace
    const char *pairs, *eval_pairs, *annotator, *loss, *keep, *from, *compare, *question, *completion;
    int smooth, together, per_question, most_pairs, batch_size, warmup_steps, explain, rollout;
    float noise;
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
//                 on rollouts of an older policy: that is when the ratio leaves 1 and the clip has work,
//                 and the clip of the value as well
//     resample    dynamic sampling: how often a zero-variance group is replaced by another question; one that
//                 is left after that is not trained on
//     overlong    in the last so many tokens before the limit the reward falls by up to 1
//
// So a method is a row of defaults, and between two rows one can walk: grpo with --advantage centered
// --norm token --beta 0 has nanochat's gradient to the bit (on-policy the ratio is 1, and nothing is
// clipped). In every row each question is normalized by itself, then the mean over the questions is taken.

typedef struct {
    const char *name, *paper, *differs;             // differs: where the row leaves its paper
    const char *advantage, *ratio, *norm;           // words of the lists below
    float clip_low, clip_high, beta;                // the clip's bounds, 1 - low and 1 + high; per nat
    const char *kl_estimator, *kl_in;
    int minibatch, resample, overlong;              // questions; redraws; tokens before the limit
} Method;

// A row reads: name, paper, what differs; advantage, ratio, norm; clip below and above, beta, estimator and
// place of the KL; minibatch, resample, overlong.
static const Method methods[] = {
    {"nanochat", "Karpathy 2025 (D1)",
     "there the 16 rollouts are averaged in two passes of 8, gradients are not\n"
     "  clipped, and Muon steps the matrices",
     "centered", "none", "token", 0, 0, 0, "k3", "loss", 0, 0, 0},
    {"reinforce", "Williams 1992", "no baseline (b = 0); AdamW on all answers at once, there plain steps",
     "none", "none", "sum", 0, 0, 0, "k3", "loss", 0, 0, 0},
    {"rloo", "Ahmadian et al. 2024", "there 2 or 4 answers, and a KL penalty in the reward: --beta 0.03",
     "rloo", "none", "sum", 0, 0, 0, "k1", "reward", 0, 0, 0},
    {"grpo", "Shao et al. 2024", "16 answers, there 64; the reference stays the first policy, there it moves",
     "grpo", "token", "sequence", 0.2f, 0.2f, 0.04f, "k3", "loss", 0, 0, 0},
    {"drgrpo", "Liu et al. 2025", "nothing of weight: the constant is the longest possible answer",
     "centered", "token", "constant", 0.2f, 0.2f, 0, "k3", "loss", 0, 0, 0},
    {"dapo", "Yu et al. 2025",
     "2 gradient steps, there 16; at most 3 redraws, there no end; tokens are\n"
     "  averaged per question as in its formula, in its code over the batch",
     "grpo", "token", "token", 0.2f, 0.28f, 0, "k3", "loss", 8, 3, 16},
    {"gspo", "Zheng et al. 2025",
     "bounds 100 times wider than 3e-4 and 4e-4, since a mean over few tokens\n"
     "  is less calm; 2 gradient steps, there 4",
     "grpo", "sequence", "sequence", 0.03f, 0.04f, 0, "k3", "loss", 8, 0, 0},
    {"cispo", "MiniMax 2025",
     "2 gradient steps, there 16 and dapo's redraws and length penalty; tokens as\n"
     "  in dapo; no lower bound (1 - 1 = 0), as there; it does not tell the upper",
     "grpo", "cispo", "token", 1, 0.28f, 0, "k3", "loss", 8, 0, 0},
    {"ppo", "Ouyang et al. 2022",
     "2 gradient steps, there 8; advantages are not whitened; the value model\n"
     "  begins as the policy's body, there as the reward model; no pretraining mix",
     "gae", "token", "token", 0.2f, 0.2f, 0.02f, "k1", "reward", 8, 0, 0},
};
enum { METHODS = sizeof methods / sizeof *methods };

// What an option may be: lists that end in NULL, in the order of ADVANTAGE_, RATIO_ and NORM_.
static const char* const advantage_names[] = {"none", "centered", "rloo", "grpo", "gae", NULL};
enum { RATIO_NONE, RATIO_TOKEN, RATIO_SEQUENCE, RATIO_CISPO };
static const char* const ratio_names[] = {"none", "token", "sequence", "cispo", NULL};
static const char* const norm_names[] = {"token", "sequence", "sum", "constant", NULL};
static const char* const estimator_names[] = {"k1", "k2", "k3", NULL};
static const char* const kl_in_names[] = {"loss", "reward", NULL};
static const char* const kl_per_names[] = {"sequence", "token", NULL};

// Makes a method's decisions the defaults.
static void set_method(RlOptions* o, const char* name) {
    const Method* m = &methods[choose_row(name, methods, METHODS, sizeof *methods, "algo")];
    o->algo = m->name;
    o->advantage = m->advantage;
    o->ratio = m->ratio;
    o->norm = m->norm;
    o->clip_low = m->clip_low;
    o->clip_high = m->clip_high;
    o->beta = m->beta;
    o->kl_estimator = m->kl_estimator;
    o->kl_in = m->kl_in;
    o->minibatch = m->minibatch;
    o->resample = m->resample;
    o->overlong = m->overlong;
}

static RlOptions rl_defaults(void) {
    RlOptions o = {
        .model = "out/run/sft",              // where RL begins: the supervised model of `make run`
        .data = "data/train.jsonl",
        .eval_data = "data/test.jsonl",      // never trained on
        .reward = "gsm8k",
        .out = "out/rl",
        .num_samples = 16,                   // K, rollouts per question, as in nanochat
        .examples_per_step = 16,             // B, questions per update, as in nanochat
        .eval_every = 20,                    // updates
        .eval_examples = 64,                 // held-out questions, and how often each is asked
        .eval_samples = 4,
        .log_every = 5,                      // updates in one printed line
        .num_epochs = 2,                     // times through the questions: 800 of them are 100 updates
        .sample = {.max_new_tokens = 96, .temperature = 1.0f, .top_k = 50, .top_p = 1.0f},
        .lr = 4e-3f,                         // supervised training's rate,
        .init_lr_frac = 0.1f,                // and the share of it with which RL begins
        .grad_clip = 1.0f,                   // a longer gradient is shortened to this
        .adam = {0.9f, 0.95f, 1e-8f, 0.0f},  // beta1, beta2, eps, weight decay
        .seed = 1,
        .kl_per = "sequence",                // an answer's KL is a sum, as in D3's formula (its code: mean)
        .gamma = 1.0f,                       // GAE: no discount (chapter 4),
        .lambda = 0.95f,                     // and how far an advantage trusts the rewards beyond the value
        .value_lr = 1e-3f,                   // the value model's own rate
        .value_clip = 0.2f,                  // how far a value moves on one batch
        .epochs_per_batch = 1,               // gradient passes over the same rollouts
        .annotator = "verifier",             // from here on: chapter 12's commands
        .keep = "prompt",
        .per_question = 4,
        .batch_size = 32,
        .warmup_steps = 10,
        .rollout = -1,
    };
    set_method(&o, methods[0].name);
    return o;
}

// ---- who learns from whom

// What is paid for: a reward function, a reward model's score, or the sum of both. The verifier of `kind` is
// there in any case, to tell how many answers are really right.
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
    int zero_variance;                           // all rewards were equal, before length penalty and KL
    int trained;                                 // 0: neither advantage nor KL, so nothing to learn
    double loss, value_loss;                     // this group's shares of the minibatch's losses
    float *reward, *total;                       // (K) reward; that minus the KL, then (not GAE) advantage
    int* mask;                                   // (K,T1), like all that follows: 1 = token t+1 was sampled
    float *logp_old, *logp_ref, *kl;             // of the policy that sampled, of the reference, estimated KL
    float *token_reward, *adv, *weight;          // what the loss takes besides log-probabilities
    float *logp, *log_ratio, *dlogp, *dkl;       // of the policy in training
    float *value_old, *target, *value, *dvalue;  // of the value model
} Group;

// B groups of K rollouts with room for T tokens.
static Group* groups_new(int B, int K, int T) {
    Group* group = allocate((size_t)B, sizeof(Group));
    size_t n = (size_t)K * (size_t)(T - 1);
    for (int i = 0; i < B; i++) {
        Group* g = &group[i];
        float** arrays[] = {&g->reward, &g->total,     &g->logp_ref, &g->kl,        &g->token_reward,
                            &g->adv,    &g->weight,    &g->logp,     &g->log_ratio, &g->dlogp,
                            &g->dkl,    &g->value_old, &g->target,   &g->value,     &g->dvalue};
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
static Grades grade_rollouts(float* reward, const Rollout* rollouts, int K, const char* truth,
                             const RewardKind* kind) {
    Grades g = {0};
    for (int k = 0; k < K; k++) {
        const Rollout* r = &rollouts[k];
        Text text = rollout_text(r);
        Grade grade = grade_answer(text.data, truth, kind);
        reward[k] = grade.reward;
        g.correct += grade.correct;
        g.tool += used_tool(r);
        g.format += grade.found;
        g.tokens += r->length;
        g.sampled += count_masked(r->mask, r->T);
        for (int t = 0; t + 1 < r->T; t++) g.entropy += r->entropy[t];
        text_free(&text);
    }
    return g;
}

// Adds a reward model's scores to `paid` times the rewards. It reads question and answer, and says one number
// at the last token.
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
            fail(2, "the reward model's score is not a number for rollout %d of the question: %s", k + 1,
                 question.data);
        }
        reward[k] = (paid ? reward[k] : 0.0f) + own;
    }
    free(last), free(score);
}

// DAPO's soft overlong punishment: 0 for an answer that leaves `window` tokens of the limit unused, falling
// to -1 for one that uses all of them.
static void add_overlong_penalties(float* reward, const Rollout* rollouts, int K, int limit, int window) {
    for (int k = 0; k < K; k++) {
        int over = rollouts[k].length - (limit - window);
        if (window > 0 && over > 0) reward[k] -= (float)over / (float)window;
    }
}

// A group whose rewards are all equal has zero variance: its advantages are 0, and it teaches nothing, unless
// a KL in the loss pulls it towards the reference.
static int all_equal(const float* x, int n) {
    for (int i = 1; i < n; i++) if (x[i] != x[0]) return 0;
    return 1;
}

static int has_nonzero(const float* x, int n) {
    for (int i = 0; i < n; i++) if (x[i] != 0.0f) return 1;
    return 0;
}

// ---- what an update was like

// One record per update. metrics.csv has all of it, the screen the columns with a width: means over the
// updates since the last line. The same columns for every method, so that two logs can be compared.
typedef struct {
    double reward, accuracy, kl_ref, clip_fraction, length, entropy, grad_norm, seconds, held_out;
    double pass_rate, tool_rate, format_rate, zero_variance, resampled, ratio, approx_kl, loss, value_loss;
    double lr, tokens_per_second;
} Metrics;

#define AT(field) offsetof(Metrics, field)
static const Column rl_columns[] = {
    {"reward", "reward", AT(reward), 7, 3, 0},       // mean over the rollouts
    {"accuracy", "accuracy", AT(accuracy), 9, 3, 0}, // share of them that the verifier accepts
    {"kl_ref", "kl_ref", AT(kl_ref), 8, 3, 0},       // KL(policy || reference) by k1, nats per answer
    {"clip_fraction", "clipped", AT(clip_fraction), 8, 4, 0}, // share of trained tokens that the clip holds
    {"length", "length", AT(length), 7, 1, 0},                // tokens per answer, the tool's too
    {"entropy", "entropy", AT(entropy), 8, 3, 0},             // of the policy at the sampled tokens, nats
    {"grad_norm", "|grad|", AT(grad_norm), 7, 3, 0},          // before clipping, mean over the gradient steps
    {"seconds", "seconds", AT(seconds), 8, 2, 0},             // of the update, without evaluation
    {"held_out", "held-out", AT(held_out), 9, 3, 1}, // pass@1 on held-out questions; empty = not looked at
    {"pass_rate", NULL, AT(pass_rate), 0, 0, 0},     // questions with at least one right rollout
    {"tool_rate", NULL, AT(tool_rate), 0, 0, 0},     // rollouts in which the tool answered
    {"format_rate", NULL, AT(format_rate), 0, 0, 0}, // rollouts whose answer is where the reward looks
    {"zero_variance", NULL, AT(zero_variance), 0, 0, 0}, // groups whose rewards are all equal
    {"resampled", NULL, AT(resampled), 0, 0, 0},         // groups drawn again (dynamic sampling)
    {"ratio", NULL, AT(ratio), 0, 0, 0},                 // pi/pi_old, mean over trained tokens, last epoch
    {"approx_kl", NULL, AT(approx_kl), 0, 0, 0},         // KL(pi_old || pi) by k3, nats per trained token
    {"loss", NULL, AT(loss), 0, 0, 0},
    {"value_loss", NULL, AT(value_loss), 0, 0, 0},
    {"lr", NULL, AT(lr), 0, 0, 0},
    {"tokens_per_second", NULL, AT(tokens_per_second), 0, 0, 0}, // the tool's too; not those drawn again
    {0},
};

// The record of an update: means over its B questions, their K answers each, or the n = K * T1 places of a
// group whose mask is 1. kl_ref, ratio, approx_kl are estimates (chapter 8); the sampler's entropy is exact.
// Without a reference there is no distance to it: NaN, an empty field.
static Metrics measure(const Learner* l, const Group* group, int B, int K, int n, int steps, double seconds) {
    double answers = (double)B * K, tokens = 0.0, sampled = 0.0, trained = 0.0;
    Metrics s = {.held_out = NAN, .kl_ref = l->reference ? 0.0 : NAN, .seconds = seconds};
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
            double slope, ratio = bounded_exp(&slope, g->log_ratio[j]);
            int clipped =
                l->ratio != RATIO_NONE && is_clipped(ratio, g->adv[j], l->o->clip_low, l->o->clip_high);
            if (l->ratio == RATIO_CISPO)
                clipped = ratio < 1.0 - l->o->clip_low || ratio > 1.0 + l->o->clip_high;
            trained++;
            s.ratio += ratio;
            s.clip_fraction += clipped;
            s.approx_kl += kl_estimate(&slope, (double)g->logp_old[j] - g->logp[j], 3);
        }
    }
    s.entropy /= fmax(sampled, 1.0);
    s.ratio = trained > 0.0 ? s.ratio / trained : 1.0;
    s.clip_fraction /= fmax(trained, 1.0);
    s.approx_kl /= fmax(trained, 1.0);
    s.tokens_per_second = tokens / seconds;
    return s;
}

// ---- one update, top to bottom

// On the questions q->list[chosen[0 .. B-1]], with the arrays of `group` (B). decay: the schedule's factor on
// the learning rates.
static Metrics rl_step(Learner* l, Group* group, const Questions* q, const int* chosen, long step,
                       double decay) {
    const RlOptions* o = l->o;
    int B = o->examples_per_step, K = o->num_samples, T = group->rollouts->T, T1 = T - 1, n = K * T1;
    int minibatch = o->minibatch ? min_int(o->minibatch, B) : B, per_epoch = (B + minibatch - 1) / minibatch;
    int steps = o->epochs_per_batch * per_epoch;       // gradient steps; 1 = on-policy from first to last
    int turns = turns_of(l->policy, minibatch), limit = o->sample.max_new_tokens;
    int kl_in_loss = o->beta > 0.0f && !l->kl_in_reward, redrawn = 0;    // the KL is paid once, here or there
    float beta_in_reward = l->kl_in_reward ? o->beta : 0.0f, low = o->clip_low, high = o->clip_high;
    double lr = (double)o->lr * o->init_lr_frac * decay, grad_norm = 0.0, started = seconds_now();

    // 1 to 3. Take questions, sample K rollouts of each, reward them. Dynamic sampling (DAPO) replaces a
    //         question whose rewards are all equal by another one, up to o->resample times. (What is drawn
    //         follows from seed, update, round, question and rollout alone: a resumed run draws the same.)
    for (int round = 0; round <= o->resample; round++) {
        #pragma omp parallel for schedule(dynamic) reduction(+ : redrawn)
        for (int i = 0; i < B; i++) {
            Group* g = &group[i];
            uint64_t stream = (uint64_t)step * (uint64_t)B + (uint64_t)i, seed = o->seed + 1;
            Rng rng = random_stream(o->seed + 3, stream, (uint64_t)round);
            if (round && !g->zero_variance) continue;
            redrawn += round > 0;
            g->question = &q->list[round ? random_int(&rng, q->count) : chosen[i]];
            sample_rollouts(g->rollouts, worker(l->policy), &g->question->prompt, 1, K, o->sample,
                            tool_calculator, seed + ((uint64_t)round << 32), stream);
            shift_mask(g->mask, g->rollouts->mask, K, T);
            g->grades = grade_rollouts(g->reward, g->rollouts, K, g->question->truth, l->reward.kind);
            if (l->reward.model)
                add_model_rewards(g->reward, l->reward.paid, worker(l->reward.model), g->rollouts, K);
            g->zero_variance = all_equal(g->reward, K);
        }
    }

    // 4. The reward of each token, with the KL penalty; its advantage; what it counts in the loss.
    #pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < B; i++) {
        Group* g = &group[i];
        const int *ids = g->rollouts->ids, *mask = g->mask;
        int from = i / minibatch * minibatch, questions = min_int(from + minibatch, B) - from;
        const float* kl = beta_in_reward > 0.0f ? g->kl : NULL;   // NULL: the reward alone
        add_overlong_penalties(g->reward, g->rollouts, K, limit, o->overlong);
        if (l->reference) answers_forward(g->logp_ref, worker(l->reference), ids, mask, K, T);
        if (kl && l->estimator == 1) kl_k1(g->kl, g->logp_old, g->logp_ref, n);
        if (kl && l->estimator == 2) kl_k2(g->kl, g->logp_old, g->logp_ref, n);
        if (kl && l->estimator == 3) kl_k3(g->kl, g->logp_old, g->logp_ref, n);
        token_rewards(g->token_reward, g->reward, kl, mask, K, T1, beta_in_reward, l->kl_mean);
        if (l->value) {
            answers_forward(g->value_old, worker(l->value), ids, mask, K, T);
            group_gae(g->adv, g->token_reward, g->value_old, mask, K, T1, o->gamma, o->lambda);
            for (int j = 0; j < n; j++) g->target[j] = g->adv[j] + g->value_old[j];
        } else {
            sequence_logprobs(g->total, g->token_reward, mask, K, T1);   // here: an answer's token rewards
            compute_advantages(g->total, g->total, K, l->advantage);
            broadcast_advantages(g->adv, g->total, mask, K, T1);
        }
        token_weights(g->weight, mask, K, T1, l->norm, limit);
        for (int j = 0; j < n; j++) g->weight[j] /= (float)questions;
        g->trained = (kl_in_loss || has_nonzero(g->adv, n)) && !(o->resample && g->zero_variance);
        g->loss = g->value_loss = 0.0;
    }

    // 5 and 6. Per minibatch: log-probabilities, loss, KL, backward of each question; then clip and step. (A
    //          turn takes every turns-th question and adds up gradients of its own; add_gradients() adds the
    //          turns in their order. So the number of threads changes not one bit.)
    for (int update = 0; update < steps; update++) {
        int from = update % per_epoch * minibatch, to = min_int(from + minibatch, B);
        #pragma omp parallel for schedule(dynamic)
        for (int turn = 0; turn < turns; turn++) {
            Model *m = learning_worker(l->policy, turn), *v = learning_worker(l->value, turn);
            for (int i = from + turn; i < to; i += turns) {
                Group* g = &group[i];
                const int *ids = g->rollouts->ids, *mask = g->mask;
                float *logp = g->logp, *log_ratio = g->log_ratio, *dlogp = g->dlogp, *adv = g->adv,
                      *w = g->weight;
                if (g->trained) {
                    answers_forward(logp, m, ids, mask, K, T);
                    // the method's ratio picks a loss of chapter 9, which writes d(loss)/d(logp) to dlogp
                    if (l->ratio == RATIO_SEQUENCE)
                        sequence_log_ratio(log_ratio, logp, g->logp_old, mask, K, T1);
                    else token_log_ratio(log_ratio, logp, g->logp_old, mask, K, T1);
                    if (l->ratio == RATIO_NONE) g->loss += loss_policy_gradient(dlogp, logp, adv, w, n);
                    else if (l->ratio == RATIO_CISPO)
                        g->loss += loss_cispo(dlogp, logp, log_ratio, adv, w, n, low, high);
                    else g->loss += loss_clip(dlogp, log_ratio, adv, w, n, low, high);
                    if (kl_in_loss) {
                        g->loss += o->beta * loss_kl(g->dkl, logp, g->logp_ref, w, n, l->estimator);
                        for (int j = 0; j < n; j++) dlogp[j] += o->beta * g->dkl[j];
                    }
                    answers_backward(m, dlogp, ids, mask, K, T);
                }
                // the value model learns from every group: an advantage of 0 does not prove a value right
                if (v) {
                    answers_forward(g->value, v, ids, mask, K, T);
                    g->value_loss +=
                        loss_value(g->dvalue, g->value, g->value_old, g->target, w, n, o->value_clip);
                    answers_backward(v, g->dvalue, ids, mask, K, T);
                }
            }
        }
        add_gradients(l->policy, turns);                 // turn 0, 1, 2, ...: the same sum for any threads
        grad_norm += clip_and_step(l->policy, l->optimizer, lr, o->grad_clip, o->adam);
        if (!l->value) continue;
        add_gradients(l->value, turns);
        clip_and_step(l->value, l->value_optimizer, o->value_lr * decay, o->grad_clip, o->adam);
    }

    // 7. What it was like. The next update overwrites the rollouts: they came from the old policy.
    Metrics s = measure(l, group, B, K, n, steps, seconds_now() - started);
    s.resampled = redrawn;
    s.grad_norm = grad_norm / steps;
    s.lr = lr;
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

// One line per rollout; `chosen` gets a mark. Its log pi(y|x) when it was sampled, and by `other` (K,T1, or
// NULL) under a second model or after the update; names: of these columns and their difference.
static void print_rollouts(const Group* g, int K, int rewarded, const float* other, const char* const* names,
                           int chosen) {
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

// 1 when the first byte of the answer is below 128: half of all bytes (special tokens are spelled <|...|>).
static float reward_ascii(const char* response, const char* truth) {
    (void)truth;
    return *response && (unsigned char)*response < 128 ? 1.0f : 0.0f;
}

// The loop's own rl_step() on one question, and what it left behind. The model is untrained and can do no
// sums, so the reward is a simpler one.
static void lesson_10(int more) {
    (void)more;
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
    printf("   Question  how do sampled answers become a step of the weights?\n");
    printf("   Formula   loss = - sum over sampled tokens of adv x log pi / their number\n");
    printf("   Symbols   adv = reward - mean reward of the question; log pi in nats;\n");
    printf("             dlogp = d loss / d log pi of a token\n\n");
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
            if (g->mask[k * T1 + t])
                printf("  %4d %+7.4f", g->rollouts[k].ids[t + 1], (double)g->dlogp[k * T1 + t]);
        printf("\n");
    }
    printf("\n6. Backward: gradient norm %.4f, clipped at %g. AdamW, learning rate %.2e.\n", s.grad_norm,
           (double)o.grad_clip, s.lr);
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
 * To sample exactly k answers and look is unbiased, but noisy. If n >= k answers were sampled and c of them
 * are right, then of all C(n,k) ways to choose k of them C(n-c,k) contain no right one, so
 *
 *     pass@k = 1 - C(n-c,k) / C(n,k)                              (Chen et al. 2021)
 *
 * is the average over all choices. Its expectation is exactly 1 - (1-p)^k for answers that are right with
 * probability p. The shortcut 1 - (1 - c/n)^k is biased: an estimate raised to a power is no estimate of the
 * power. The lesson computes both expectations.
 *
 * Majority vote is the other way to use many samples, with no training at all: give the answer that most of
 * them agree on. It needs no verifier, but it can only amplify what the model already answers most often.
 *
 * Traps. (1) pass@k grows with k by itself. It says what the model could find in k tries, not how often it is
 * right in one. (2) Samples of one question are not independent evidence, questions are: the intervals count
 * questions. (3) None of this means anything when the test questions were trained on. D2 keeps 500 of 12,500
 * problems apart for that reason, and whether they are apart is something to check (end of this chapter).
 * ======================================================================================================== */

// pass@k from n samples of which `correct` are right: 1 - C(n-c,k)/C(n,k), as a product so that no factorial
// overflows: C(n-c,k)/C(n,k) = prod_{i=n-c+1..n} (1 - k/i). Returns 0 for k < 1 or n < 1; k larger than n
// counts as n; `correct` is held between 0 and n. (Chen et al. 2021, arXiv 2107.03374, equation 1)
double pass_at_k(int n, int correct, int k) {
    if (n < 1 || k < 1) return 0.0;
    k = min_int(k, n);
    correct = max_int(0, min_int(correct, n));
    if (n - correct < k) return 1.0;
    double none = 1.0;
    for (int i = n - correct + 1; i <= n; i++) none *= 1.0 - (double)k / i;
    return 1.0 - none;
}

// The answer that most of n answers agree on: the index of the first one of the largest group of equal
// answers. An empty answer "" abstains. -1 when nobody votes. Time: n comparisons for each different text.
int majority_vote(const char* const* answers, int n) {
    int best = -1, most = 0;
    for (int i = 0; i < n; i++) {
        int votes = 0, counted = !*answers[i];
        for (int j = 0; j < i && !counted; j++) counted = !strcmp(answers[j], answers[i]);
        for (int j = 0; j < n && !counted; j++) votes += *answers[j] && answers_equal(answers[i], answers[j]);
        if (votes <= most) continue;
        best = i;
        most = votes;
    }
    return best;
}

// ---- from the answers to one question to means and intervals over all questions

typedef struct {
    int questions, samples;
    // Rates, (samples) each; entry k-1 is about k answers. While questions are added, sums over them.
    double *pass, *low, *high;             // pass@k and its 95% interval
    double *vote, *vote_low, *vote_high;   // majority of k answers: k = 1, 2, 4, ... and samples only
    double* no_vote;                       // share of the groups of k in which nobody votes
    double *squares, *vote_squares;        // sums over the questions of their rates squared
    int* right;                            // (questions) how many answers to each are right
    double tool_rate, format_rate, length; // shares of the answers; tokens per answer
    double entropy, kl;                    // nats per token; KL(model || reference) in nats per answer
    long sampled;                          // tokens that the model itself sampled
} Evaluation;

static Evaluation evaluation_new(int samples) {
    Evaluation e = {.samples = samples};
    double** rates[] = {&e.pass, &e.low, &e.high, &e.vote, &e.vote_low, &e.vote_high, &e.no_vote, &e.squares,
                        &e.vote_squares};
    size_t n = (size_t)samples, count = sizeof rates / sizeof *rates;
    e.pass = allocate(count * n, sizeof(double));      // one piece of memory for all
    for (size_t i = 1; i < count; i++) *rates[i] = e.pass + i * n;
    return e;
}

static void evaluation_free(Evaluation* e) {
    free(e->pass), free(e->right);
    *e = (Evaluation){0};
}

// The k after this one of 1, f, f^2, ..., which end with n itself; 0 = that was the last.
static int next_k(int k, int f, int n) { return k >= n ? 0 : k > n / f ? n : k * f; }

// A 95% interval for a mean rate p over n questions, whose rates have the variance `variance`: Wilson's, for
// as many independent coin flips as have the same standard error, sqrt(variance / n). (p +- 1.96 standard
// errors is wrong near 0 and 1: at 16 of 16 it would claim certainty.)
static void rate_interval(double* low, double* high, double p, double variance, int n) {
    double flips = variance > 0.0 && p > 0.0 && p < 1.0 ? p * (1.0 - p) / (variance / n) : n, z = 1.96;
    double middle = (p + z * z / (2 * flips)) / (1 + z * z / flips);
    double half = z / (1 + z * z / flips) * sqrt(p * (1 - p) / flips + z * z / (4 * flips * flips));
    *low = fmax(0.0, middle - half);
    *high = fmin(1.0, middle + half);
}

// The mean of the rates of n questions and its 95% interval, from their sum and the sum of their squares. A
// rate from `tries` independent tries has at least the variance of coin flips, mean (1 - mean) / tries: few
// rates may happen to differ by less, which is no certainty. tries = 0: the variance is taken as found.
static double mean_rate(double* low, double* high, double sum, double squares, int n, int tries) {
    double mean = sum / n, variance = n > 1 ? (squares - n * mean * mean) / (n - 1) : 0.0;
    if (variance > 0.0 && tries) variance = fmax(variance, mean * (1.0 - mean) / tries);
    rate_interval(low, high, mean, variance, n);
    return mean;
}

// The share of right votes of one question: its n answers ("" = none was found) make n / votes disjoint
// groups, each group votes, and it is right when the answer that won is: correct (n). *none (out): the share
// of groups in which nobody voted; these are not right. No group: both are 0. A tie goes to the answer that
// came first, a fair draw: two votes are as good as one, except where the first abstains.
static double vote_accuracy(double* none, const char* const* answers, const int* correct, int n,
                            int votes) {
    int groups = votes > 0 ? n / votes : 0, right = 0, nobody = 0;
    for (int from = 0; from < groups * votes; from += votes) {
        int winner = majority_vote(answers + from, votes);
        if (winner < 0) nobody++;
        else right += correct[from + winner];
    }
    *none = (double)nobody / max_int(groups, 1);
    return (double)right / max_int(groups, 1);
}

// One more question, with n >= samples answers: what each votes for ("" = nothing); correct (n).
static void evaluation_add(Evaluation* e, const char* const* answers, const int* correct, int n) {
    int right = 0;
    double none;
    for (int i = 0; i < n; i++) right += correct[i];
    for (int k = 1; k <= e->samples; k++) {
        double rate = k == 1 ? (double)right / n : pass_at_k(n, right, k);   // without the product's rounding
        e->pass[k - 1] += rate;
        e->squares[k - 1] += rate * rate;
    }
    for (int k = 1; k; k = next_k(k, 2, e->samples)) {
        double rate = vote_accuracy(&none, answers, correct, n, k);
        e->vote[k - 1] += rate;
        e->vote_squares[k - 1] += rate * rate;
        e->no_vote[k - 1] += none;
    }
    e->right = enlarge(e->right, (size_t)e->questions + 1, sizeof(int));
    e->right[e->questions++] = right;
}

// Turns all sums into means, and finds the intervals. pass@k and the vote of k are worth samples / k
// independent tries, the disjoint groups of k. For k = 1 they are many: the shares show their own variance.
static void evaluation_finish(Evaluation* e) {
    int n = e->questions;
    double answers = (double)n * e->samples;
    for (int i = 0; i < e->samples; i++) {
        int tries = i ? e->samples / (i + 1) : 0;
        e->pass[i] = mean_rate(&e->low[i], &e->high[i], e->pass[i], e->squares[i], n, tries);
        e->vote[i] = mean_rate(&e->vote_low[i], &e->vote_high[i], e->vote[i], e->vote_squares[i], n, tries);
        e->no_vote[i] /= n;
    }
    e->tool_rate /= answers;
    e->format_rate /= answers;
    e->length /= answers;
    e->kl /= answers;
    e->entropy /= fmax(1.0, (double)e->sampled);
}

// ---- a model on questions

// KL(model || reference) by k1, summed over K answers to each of B questions; tokens that were not sampled
// give 0. (k3's exponential would let one answer decide, far from the reference: chapter 8.)
static double sum_of_kl(Model* reference, const Rollout* rollouts, int B, int K) {
    size_t n = (size_t)K * (size_t)(rollouts->T - 1);
    float* logp_ref = allocate((size_t)B * n, sizeof(float));
    double sum = 0.0;
    #pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < B; i++)
        score_rollouts(logp_ref + (size_t)i * n, worker(reference), rollouts + (size_t)i * K, K);
    for (size_t i = 0; i < (size_t)B * n; i++) sum += (double)rollouts->logp[i] - logp_ref[i];
    free(logp_ref);
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

// One more question, with its K rollouts. Each votes for its answer in the rewarded format.
static void evaluation_add_rollouts(Evaluation* e, const Rollout* r, int K, const char* truth,
                                    const RewardKind* kind) {
    Grade* grade = allocate((size_t)K, sizeof(Grade));
    const char** answers = allocate((size_t)K, sizeof(char*));
    int* correct = allocate((size_t)K, sizeof(int));
    for (int k = 0; k < K; k++, r++) {
        Text text = rollout_text(r);
        grade[k] = grade_answer(text.data, truth, kind);
        answers[k] = grade[k].answer;
        correct[k] = grade[k].correct;
        e->tool_rate += used_tool(r);
        e->format_rate += grade[k].found;
        e->length += r->length;
        e->sampled += count_masked(r->mask, r->T);
        for (int t = 0; t + 1 < r->T; t++) e->entropy += r->entropy[t];
        text_free(&text);
    }
    evaluation_add(e, answers, correct, K);
    free(grade), free(answers), free(correct);
}

// Samples `samples` answers to each of the first `count` questions and grades them. With a reference (else
// NULL) the distance to it is measured too.
static Evaluation evaluate_model(Model* m, const Questions* q, int count, int samples, SampleOptions sample,
                                 const RewardKind* kind, Model* reference, uint64_t seed) {
    count = min_int(count, q->count);
    Evaluation e = evaluation_new(samples);
    int together = max_int(1, EVAL_ROWS / samples);
    for (int from = 0; from < count; from += together) {
        int B = min_int(together, count - from);
        Rollout* rollouts = answer_questions(m, q, from, B, samples, sample, seed);
        if (reference) e.kl += sum_of_kl(reference, rollouts, B, samples);
        for (int i = 0; i < B; i++)
            evaluation_add_rollouts(&e, rollouts + (size_t)i * samples, samples, q->list[from + i].truth,
                                    kind);
        rollouts_free(rollouts);
    }
    evaluation_finish(&e);
    return e;
}

// ---- did training teach, or only elicit? Two models on the same questions (D3 section 7)
//
// D3 leaves it open whether RL gives a model new abilities or makes frequent what was rare. The question can
// be put to pass@k: for k = 1 it says what a model does, for a large k what is within its reach. Training
// that lifts the first and not the second has elicited; when the second even falls, it has narrowed the model
// (Yue et al. 2025, arXiv 2504.13837). Traps: where the model before reaches everything, harder questions are
// needed; one of 256 answers may be right by luck, since the verifier sees the number only; "not in 256
// answers" is not "never".

// pass@k after minus before, on the same questions with the same number of samples, and its 95% interval from
// the two rates' own ones and the correlation r over the questions (Newcombe 1998, Zou and Donner 2008):
//
//     low  = difference - sqrt(a^2 - 2 r a b + b^2),    a = after - its low,  b = before's high - before
//     high = difference + sqrt(c^2 - 2 r c d + d^2),    c = its high - after, d = before - before's low
//
// computed as (a - b)^2 + 2 (1 - r) a b, so that nothing cancels where the two rates are alike. Not
// difference +- 1.96 standard errors: if both solve everything, these would be 0.
static double pass_difference(double* low, double* high, const Evaluation* before, const Evaluation* after,
                              int k) {
    double x = before->pass[k - 1], y = after->pass[k - 1], xx = 0.0, yy = 0.0, xy = 0.0;
    for (int i = 0; i < before->questions; i++) {
        double dx = pass_at_k(before->samples, before->right[i], k) - x;
        double dy = pass_at_k(after->samples, after->right[i], k) - y;
        xx += dx * dx;
        yy += dy * dy;
        xy += dx * dy;
    }
    double r = xx * yy > 0.0 ? xy / sqrt(xx * yy) : 0.0;
    double a = y - after->low[k - 1], b = before->high[k - 1] - x;
    double c = after->high[k - 1] - y, d = x - before->low[k - 1];
    *low = y - x - sqrt(fmax(0.0, (a - b) * (a - b) + 2.0 * (1.0 - r) * a * b));
    *high = y - x + sqrt(fmax(0.0, (c - d) * (c - d) + 2.0 * (1.0 - r) * c * d));
    return y - x;
}

// solved[0..3]: how many questions had a right answer from neither, only before, only after, from both.
static void count_solved(int solved[4], const Evaluation* before, const Evaluation* after) {
    memset(solved, 0, 4 * sizeof(int));
    for (int i = 0; i < before->questions; i++) solved[(before->right[i] > 0) + 2 * (after->right[i] > 0)]++;
}

// ---- keeping train and test apart
//
// Not by comparing bytes: a question leaks with another space, another name or other numbers. So there are
// kinds of "the same", from strict to loose. `./rl train` refuses the certain one; `./rl overlap`
// (docs/tools.c) counts all of them and shows examples, near duplicates too, because the loose ones are for a
// person to judge: problems of one template with other numbers may be just what a test should ask.
enum {
    SAME_WORDS,          // without case, spaces and punctuation
    SAME_BUT_NAMES,      // and every word with a capital letter is "@": about somebody else
    SAME_BUT_NUMBERS     // and every number is "#": one template, filled in anew
};

// The small letter of a capital one, in the alphabets that UTF-8 writes in one or two bytes. Not seen:
// letters of three bytes (Vietnamese), accents that are characters of their own, SS for the German sharp s.
static int small_letter(int c) {
    if ((c >= 'A' && c <= 'Z') || (c >= 0xC0 && c <= 0xDE && c != 0xD7)) return c + 32;           // Latin
    if ((c >= 0x391 && c <= 0x3AB) || (c >= 0x410 && c <= 0x42F)) return c + 32;   // Greek, Cyrillic
    if (c >= 0x400 && c <= 0x40F) return c + 80;
    if (c == 0x386 || c == 0x38C) return c == 0x386 ? 0x3AC : 0x3CC;              // Greek with an accent
    if (c >= 0x388 && c <= 0x38F) return c + (c <= 0x38A ? 37 : 63);
    // capital and small letter side by side: the capital has the odd number, or the even one
    if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17E) || (c >= 0x4C1 && c <= 0x4CE))
        return c + c % 2;
    if ((c >= 0x100 && c <= 0x177) || (c >= 0x460 && c <= 0x481) || (c >= 0x48A && c <= 0x52F)) return c | 1;
    return c == 0x3C2 ? 0x3C3 : c;                                                 // final sigma
}

enum { GAP, SIGN, NUMBER, LETTER };

// What the character of n bytes at p is. + - * / and the like carry the meaning of a formula, so each is a
// word; the hyphen of "two-digit" is none. The point of 3.5 and the comma of 1,000 belong to the number.
// Spaces and punctuation are gaps, also Unicode's dashes, quotes and the space that does not break.
static int character_kind(const char* text, const char* p, int n) {
    char before = p > text ? p[-1] : 0;
    int within_number = is_digit(before) && is_digit(p[1]);
    if (is_digit(*p) || (within_number && *p == '.')) return NUMBER;
    if (within_number && *p == ',' && is_thousands_comma(text, p)) return NUMBER;
    if (*p == '-' && is_letter(before) && is_letter(p[1])) return GAP;
    if (strchr("+-*/=<>^%", *p)) return SIGN;
    if (!strncmp(p, "\xE2\x80", 2) || !strncmp(p, "\xE2\x81", 2) || !strncmp(p, "\xC2\xA0", 2)) return GAP;
    return n == 1 && (unsigned char)*p < 0x80 && !is_letter(*p) ? GAP : LETTER;
}

// A question reduced to what makes it the same question: its words, with single spaces between them.
static void reduce_question(Text* out, const char* question, int likeness) {
    int before = GAP, hidden = 0, n;             // hidden: within a name
    text_append(out, "", 0);
    for (const char *p = question, *end = p + strlen(p); p < end; p += n) {
        n = max_int(1, utf8_length(p, end));
        int kind = character_kind(question, p, n);
        int c = n == 2 ? (p[0] & 0x1F) << 6 | (p[1] & 0x3F) : is_letter(*p) ? *p : 0, small = small_letter(c);
        char letter[2] = {(char)(n == 2 ? 0xC0 | small >> 6 : small), (char)(0x80 | (small & 0x3F))};
        if (kind != GAP && (kind == SIGN || before == GAP || before == SIGN)) {
            if (out->length) text_append(out, " ", 1);
            hidden = small != c && likeness >= SAME_BUT_NAMES;
            if (hidden) text_append(out, "@", 1);
        }
        before = kind;
        if (kind == GAP || hidden || *p == ',') continue;
        if (kind == NUMBER && likeness >= SAME_BUT_NUMBERS) {
            if (!out->length || out->data[out->length - 1] != '#') text_append(out, "#", 1);
        } else text_append(out, small != c ? letter : p, (size_t)n);
    }
}

static int compare_texts(const void* a, const void* b) { return strcmp(*(char* const*)a, *(char* const*)b); }

// How many questions of b also stand in a. A question without a word is like none.
static int count_overlap(const Problems* a, const Problems* b, int likeness) {
    char** known = allocate((size_t)a->count, sizeof(char*));
    int found = 0;
    for (int i = 0; i < a->count; i++) {
        Text t = {0};
        reduce_question(&t, a->list[i].question, likeness);
        known[i] = t.data;
    }
    qsort(known, (size_t)a->count, sizeof(char*), compare_texts);
    for (int i = 0; i < b->count; i++) {
        Text t = {0};
        reduce_question(&t, b->list[i].question, likeness);
        found += t.length && bsearch(&t.data, known, (size_t)a->count, sizeof(char*), compare_texts);
        text_free(&t);
    }
    for (int i = 0; i < a->count; i++) free(known[i]);
    free(known);
    return found;
}

static double binomial(int n, int c, double p) {
    double x = 1.0;
    for (int i = 0; i < c; i++) x *= (double)(n - i) / (i + 1);
    return x * pow(p, c) * pow(1 - p, n - c);
}

// The exact expectations, over c of n right answers, of pass@k and of the shortcut 1 - (1 - c/n)^k.
static void print_bias(const int* ks, int count, int n, double p) {
    printf("     k  1 - %.1f^k  1 - C(n-c,k)/C(n,k)     bias  1 - (1-c/n)^k     bias\n", 1 - p);
    for (int i = 0; i < count; i++) {
        double truth = 1 - pow(1 - p, ks[i]), good = 0.0, naive = 0.0;
        for (int c = 0; c <= n; c++) {
            good += binomial(n, c, p) * pass_at_k(n, c, ks[i]);
            naive += binomial(n, c, p) * (1 - pow(1 - (double)c / n, ks[i]));
        }
        double bias = fabs(good - truth) < 5e-13 ? 0.0 : good - truth;
        printf("  %4d %10.4f %20.4f %8.4f %14.4f %8.4f\n", ks[i], truth, good, bias, naive, naive - truth);
    }
}

static void lesson_11(int more) {
    (void)more;
    const int n = 16, ks[] = {1, 2, 4, 8, 16};
    const char* const answers[] = {"83", "38", "\\frac{166}{2}", "", "83.0", "41", "38", "83"};
    static const char* const kinds[] = {"the same words", "but for names", "but for numbers"};
    double low, high;
    printf("LESSON 11. Evaluation (D1, D2 section 6)\n\n"
           "   Question  Is the model better, at what, and how sure is that?\n"
           "   Formula   pass@k = 1 - C(n-c,k) / C(n,k)\n"
           "   Symbols   n answers to a question were sampled, c of them right. C(n,k): the\n"
           "             number of ways to choose k of n, C(n-c,k) those without a right\n"
           "             one.\n\n");
    printf("1. By hand: n = 16, c = 2, k = 2. C(14,2) = 91, C(16,2) = 120,\n"
           "   pass@2 = 1 - 91/120 = %.4f.\n\n      c", pass_at_k(16, 2, 2));
    for (int i = 0; i < 5; i++) printf("   pass@%-2d", ks[i]);
    for (int c = 0; c <= 3; c++) {
        printf("\n  %5d", c);
        for (int i = 0; i < 5; i++) printf(" %9.4f", pass_at_k(n, c, ks[i]));
    }
    printf("\n\n2. Is it unbiased? When an answer is right with probability 0.2, one of k is\n"
           "   with 1 - 0.8^k. The exact expectation over c (17 cases, binomial) of two\n"
           "   estimators:\n\n");
    print_bias(ks, 5, n, 0.2);
    printf("\n   The shortcut says too little: an estimate raised to a power is no estimate of\n"
           "   the power.\n");
    rate_interval(&low, &high, 1.0, 0.0, 16);
    printf("\n3. How sure? All of 16 questions solved is no certainty: Wilson's 95%% interval\n"
           "   begins at 16 / (16 + 1.96^2) = %.4f. Questions count, not answers.\n", low);
    printf("\n4. Majority vote of 83, 38, \\frac{166}{2}, (none), 83.0, 41, 38, 83: %s, with 4\n"
           "   to 2 to 1. Three votes, each right with chance p, wrong with q = 1 - p; of\n"
           "   three different answers the first counts, so a third of 3 p q^2 is right:\n\n"
           "     p   wrong ones differ:        wrong ones agree:\n"
           "         p^3 + 3 p^2 q + p q^2     p^3 + 3 p^2 q\n", answers[majority_vote(answers, 8)]);
    for (double p = 0.15; p < 0.7; p += 0.15) {
        double most = p * p * p + 3 * p * p * (1 - p);
        printf("  %.2f  %.4f %25.4f\n", p, most + p * (1 - p) * (1 - p), most);
    }
    printf("\n   A vote makes the most frequent answer more frequent, right or wrong.\n");
    printf("\n   D2 climbs from 15.2%% to 52%% this way (ten votes and a chain of thought), for\n"
           "   862.6 / 10.1 = %.0f times the time.\n", 862.6 / 10.1);
    printf("\n5. Train and test kept apart. What is compared of a question:\n\n"
           "  as it stands     Tom has 3 pens, Ana has 1,250.\n");
    for (int likeness = SAME_WORDS; likeness <= SAME_BUT_NUMBERS; likeness++) {
        Text text = {0};
        reduce_question(&text, "Tom has 3 pens, Ana has 1,250.", likeness);
        printf("  %-16s %s\n", kinds[likeness], text.data);
        text_free(&text);
    }
    printf("\nTake away: pass@1 is what a model does, pass@k what it finds in k tries, a vote\n"
           "what it mostly says. Each is a mean over questions that were not trained on.\n");
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
 * `make run` is the shortest recipe that shows the effect: a supervised stage on a mixed crowd's
 * demonstrations, then RLVR. docs/recipes has the three above for the tiny model. Their other stages are
 * here: pairs of answers and the annotators that make them; one trainer that turns pairs into a reward model,
 * an outcome model or, with DPO, into a policy; best-of-n, which needs a score only. The losses are chapter
 * 9's; new is where the data comes from, which tokens it sees, and whether the result can be trusted.
 * ======================================================================================================== */

// ---- preference pairs
//
// Chapter 9's judgements of the third kind: not "this answer is worth 1" but "this answer is better than that
// one". A pair is a question with two answers: Bradley-Terry compares answers to ONE question, r(x,y_w) -
// r(x,y_l). (docs/tools.c reads and writes them in files, in the two forms of TRL's data sets.)
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

// Turns texts into tokens. Pairs with a side that does not fit the context are counted and left out.
static void render_pairs(Pairs* p, int context, const char* path) {
    int kept = 0;
    for (int i = 0; i < p->count; i++) {
        Pair pair = p->list[i];
        for (int side = CHOSEN; side <= REJECTED; side++)
            render_conversation(&pair.tokens[side], pair.question, pair.answer[side]);
        if (max_int(pair.tokens[0].length, pair.tokens[1].length) <= context) p->list[kept++] = pair;
        else pair_free(&pair);
    }
    if (kept < p->count)
        printf("%s: %d of %d pairs have a side longer than the context of %d tokens and are skipped\n", path,
               p->count - kept, p->count, context);
    if (!kept) fail(2, "%s: no pair fits the model's context of %d tokens", path, context);
    p->count = kept;
}

// ---- where pairs come from: rollouts and an annotator
//
// InstructGPT's pairs come from people who rank the model's answers. Here a program ranks them: sample K
// answers to a question (chapter 6), give each a score, and write down who beats whom:
//
//     score = a reward + b length                                 length in tokens of the answer
//
// a = 1, b = 0 is the verifier of chapter 5. An annotator that looks at the length, alone (a = 0, b = 1) or
// also (a = 1, b = 1/20), is a bad one, on purpose: D3 section 5 is about what happens to a policy that is
// trained to please it. The demonstration, the answer in the data file, may compete. A judgement can be
// turned around by chance (noise): people agree with each other in 73% of cases (Ouyang et al. 2022).
//
// Traps. (1) A zero-variance group, whose answers all have the same score, gives no pair. (2) If only
// demonstrations win, a reward model can learn to tell who wrote an answer instead of whether it is right.
// (3) When right answers are longer on average, so are the chosen ones.
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
    int count = sizeof annotators / sizeof *annotators;
    return &annotators[choose_row(name, annotators, count, sizeof *annotators, "annotator")];
}

// A rollout as the answer of a data file; to be freed. NULL when it cannot be one: it was cut off, is empty
// or no UTF-8, or would be read back as other tokens or with another mask (a call that the tool did not
// answer, an output that the model wrote itself). Then training would see something that was never sampled.
static char* rollout_answer(const Rollout* r, const Question* q) {
    Text text = {0};
    Tokens again = {0};
    int end = r->prompt + r->length;
    size_t size = (size_t)end * sizeof(int);
    text_append(&text, "", 0);
    for (int t = r->prompt; t < end; t++) {
        int id = r->ids[t];
        char byte = (char)id;
        if (id < 256) text_append(&text, &byte, 1);
        else if (id == PYTHON_START) text_append(&text, "<<", 2);
        else if (id == OUTPUT_START) text_append(&text, "=", 1);
        else if (id == OUTPUT_END) text_append(&text, ">>", 2);
    }
    render_conversation(&again, q->question, text.data);
    int same = r->finished && text.length && again.length == end && !memcmp(again.ids, r->ids, size) &&
               !memcmp(again.mask, r->mask, size);
    for (const char *p = text.data, *stop = p + text.length; same && p < stop; p += utf8_length(p, stop))
        same = utf8_length(p, stop) > 0;
    tokens_free(&again);
    if (!same) text_free(&text);
    return text.data;
}

// How pairs are made from the rollouts of a question.
typedef struct {
    const Annotator* annotator;
    const RewardKind* kind;          // the verifier
    int per_question;                // at most so many pairs of one question
    float noise;                     // probability that a judgement is turned around
    uint64_t seed;                   // of the choice of pairs and of the noise
} PairRules;

// Adds the pairs of question number `index`, which has the rollouts (K): at most per_question of all (winner,
// loser), chosen at random. Of answers with the same text only the last one counts, so that a demonstration
// stays when it was sampled too.
static void annotate(Pairs* p, const Question* q, int index, const Rollout* rollouts, int K,
                     const PairRules* rules) {
    const Annotator* a = rules->annotator;
    int n = K + (a->demonstration != DEMO_NONE), count = 0;
    Tokens demo = {0};
    char** answer = allocate((size_t)n, sizeof(char*));
    float* score = allocate((size_t)K + 1, sizeof(float));
    int *pair = allocate((size_t)n * n, sizeof(int)), *order = allocate((size_t)n * n, sizeof(int));
    Rng rng = random_stream(rules->seed, (uint64_t)index, 0);
    render_conversation(&demo, q->question, q->solution);
    grade_rollouts(score, rollouts, K, q->truth, rules->kind);
    score[K] = grade_answer(q->solution, q->truth, rules->kind).reward;
    for (int k = 0; k < n; k++) {
        int length = k < K ? rollouts[k].length : demo.length - q->prompt.length;
        score[k] = a->reward * score[k] + a->length * (float)length;
        answer[k] = k < K ? rollout_answer(&rollouts[k], q) : copy_text(q->solution);
        for (int j = 0; j < k; j++) {
            if (!answer[k] || !answer[j] || strcmp(answer[j], answer[k])) continue;
            free(answer[j]);
            answer[j] = NULL;
        }
    }
    for (int w = a->demonstration == DEMO_WINS ? K : 0; w < n; w++)
        for (int l = 0; l < n; l++)
            if (answer[w] && answer[l] && score[w] > score[l]) pair[count++] = w * n + l;
    shuffle(order, count, &rng);
    for (int i = 0; i < min_int(count, rules->per_question); i++) {
        int w = pair[order[i]] / n, l = pair[order[i]] % n, turned = random_uniform(&rng) < rules->noise;
        pairs_add(p, q->question, answer[turned ? l : w], answer[turned ? w : l]);
    }
    for (int k = 0; k < n; k++) free(answer[k]);
    tokens_free(&demo);
    free(answer), free(score), free(pair), free(order);
}

// A random choice of `most` pairs (0: all of them), in the order of the file.
static void limit_pairs(Pairs* p, int most, uint64_t seed) {
    if (!most || p->count <= most) return;
    int n = 0, *order = allocate((size_t)p->count, sizeof(int));
    int* stays = allocate((size_t)p->count, sizeof(int));
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
// there, and each of these tokens gets d(loss)/dv of its side. A pair is ranked right when its margin is
// positive: beta ((v_w - ref_w) - (v_l - ref_l)), with beta = 1 and ref = 0 for a reward model.
//
// A reward model begins with the trunk of the supervised model and a head of zeros: it says 0 to all, the
// loss is log 2 = 0.6931, and only the head has a gradient. DPO begins at its own reference: margin 0, log 2.
//
// Traps. (1) The score belongs at the END of the answer: an earlier token has not seen the rest. (2) Mask.
// The tool's output is no choice of the policy; summed into v it would train it to guess the calculator's
// answer. (3) DPO's v is a sum, not a mean: beta has to fit the length. (4) Watch the two log-probabilities,
// not only the margin, which also grows when the chosen answers lose probability and something that is in no
// pair gains it. `./rl dpo --lr 3e-4`, ten times the default, shows it: 98% of the pairs ranked right, a
// margin of 9, the chosen answers down from -1 to -44 nats, and a policy that is right 3 times in 100. (5)
// P(right) is that of answers as in the pairs, half of them right; for a policy that is right one time in ten
// it is far too high.
enum { PAIR_BRADLEY_TERRY, PAIR_OUTCOME, PAIR_DPO };

typedef struct {
    const char *name, *what;
    int scalar, kind;                // 1 = by the scalar head, 0 = by log-probabilities
} PairLoss;

static const PairLoss pair_losses[] = {
    {"bradley-terry", "the chosen answer beats the rejected one", 1, PAIR_BRADLEY_TERRY},
    {"outcome", "the chosen answer is right, the other one wrong", 1, PAIR_OUTCOME},
    {"dpo", "as bradley-terry, on the policy's own log-ratios", 0, PAIR_DPO},
};

// What a pair said on its way through the model.
typedef struct { float value[2]; double loss, margin; } PairResult;

// Loss, margin and d(loss)/d(value) (2) of one pair from its two values. The outcome model's loss is the mean
// binary cross-entropy of a right answer (1) and a wrong one (0) (Cobbe et al. 2021).
static void pair_loss(float* dvalue, PairResult* r, const Pair* pair, int kind, float beta) {
    float *dw = &dvalue[CHOSEN], *dl = &dvalue[REJECTED], w = r->value[CHOSEN], l = r->value[REJECTED];
    float ref_w = pair->reference[CHOSEN], ref_l = pair->reference[REJECTED];
    double right, wrong;
    if (kind == PAIR_BRADLEY_TERRY) r->loss = loss_reward_model(dw, dl, w, l);
    if (kind == PAIR_DPO) r->loss = loss_dpo(dw, dl, w, l, ref_w, ref_l, beta);
    if (kind == PAIR_OUTCOME) {
        r->loss = 0.5 * (bradley_terry(&right, w) + bradley_terry(&wrong, -l));
        *dw = (float)(0.5 * right);
        *dl = (float)(-0.5 * wrong);
    }
    r->margin = (double)beta * (((double)w - ref_w) - ((double)l - ref_l));
}

// `count` pairs through the model: result (count) and, with learn, the gradient of the mean loss, added to
// grads. beta = 1 for a scalar model, whose score is asked for at the last token alone.
static void pairs_forward(PairResult* result, Model* m, Pair* const* list, int count, const PairLoss* loss,
                          float beta, int learn) {
    const Tokens** row = allocate(2 * (size_t)count, sizeof(Tokens*));
    for (int i = 0; i < 2 * count; i++) row[i] = &list[i / 2]->tokens[i % 2];
    Padded p = pad_conversations(row, 2 * count);
    int T = p.T, T1 = T - 1, turns = turns_of(m, count);
    for (int i = 0; i < 2 * count && loss->scalar; i++) {
        memset(p.mask + (size_t)i * T1, 0, (size_t)T1 * sizeof(int));
        p.mask[(size_t)i * T1 + row[i]->length - 1] = 1;
    }
    #pragma omp parallel for schedule(dynamic)
    for (int turn = 0; turn < turns; turn++) {
        Model* one = learn ? learning_worker(m, turn) : worker(m);
        float *out = allocate(2 * (size_t)T1, sizeof(float)), *d = allocate(2 * (size_t)T1, sizeof(float));
        float dvalue[2];
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
typedef struct { double loss, margin, accuracy, chosen, rejected, lr, grad_norm, seconds; } PairMetrics;

// 1 = ranked right, 0 = wrong; equal values are half right, as a coin would be.
static double ranked_right(double margin) { return margin > 0.0 ? 1.0 : margin < 0.0 ? 0.0 : 0.5; }

// One update on `count` pairs. AdamW and the clipping of the gradient as everywhere.
static PairMetrics pairs_step(Model* m, Optimizer* optimizer, Pair* const* list, int count,
                              const PairLoss* loss, float beta, float lr, float grad_clip, AdamOptions adam) {
    PairMetrics s = {.lr = lr};
    PairResult* result = allocate((size_t)count, sizeof(PairResult));
    double begin = seconds_now();
    pairs_forward(result, m, list, count, loss, beta, 1);
    for (int i = 0; i < count; i++) {
        s.loss += result[i].loss / count;
        s.margin += result[i].margin / count;
        s.accuracy += ranked_right(result[i].margin) / count;
        s.chosen += result[i].value[CHOSEN] / (double)count;
        s.rejected += result[i].value[REJECTED] / (double)count;
    }
    s.grad_norm = clip_and_step(m, optimizer, lr, grad_clip, adam);
    s.seconds = seconds_now() - begin;
    free(result);
    return s;
}

// ---- is a reward model any good? Accuracy and calibration on pairs that it was not trained on
//
// Accuracy: the share of pairs ranked right. Its interval counts questions (chapter 11's trap 2): with a_i of
// the m_i pairs of question i ranked right, p = sum a_i / sum m_i has the variance of a ratio,
//
//     var(p) = n / (n - 1) * sum_i (a_i - p m_i)^2 / (sum_i m_i)^2             n questions (Cochran 1977)
//
// Calibration: of all pairs that a reward model calls at 80%, are 80% ranked right? Each pair is read from
// the side of the predicted winner, sigma(|margin|) >= 1/2 against whether it won. An outcome model makes two
// statements per pair, sigma(r) of each answer. The expected calibration error (Naeini 2015):
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
    e->count[b]++;
    e->predicted[b] += p;
    e->observed[b] += y;
}

static void calibration_finish(PairEvaluation* e) {
    int n = 0;
    for (int b = 0; b < CALIBRATION_BINS; b++) {
        n += e->count[b];
        e->error += fabs(e->predicted[b] - e->observed[b]);      // n_b times the distance of the means
        e->predicted[b] /= max_int(e->count[b], 1);
        e->observed[b] /= max_int(e->count[b], 1);
    }
    e->error /= n;
}

typedef struct { const char* question; double right; } RankedPair;

static int compare_ranked(const void* a, const void* b) {
    return strcmp(((const RankedPair*)a)->question, ((const RankedPair*)b)->question);
}

// accuracy, low, high, pairs and questions of e. ranked (n) is put in order.
static void accuracy_finish(PairEvaluation* e, RankedPair* ranked, int n) {
    double sum = 0.0, square = 0.0;
    for (int i = 0; i < n; i++) sum += ranked[i].right;
    e->pairs = n;
    e->accuracy = sum / n;
    qsort(ranked, (size_t)n, sizeof(RankedPair), compare_ranked);
    for (int i = 0, j = 0; i < n; i = j) {
        double right = 0.0;
        for (; j < n && !compare_ranked(&ranked[i], &ranked[j]); j++) right += ranked[j].right;
        square += pow(right - e->accuracy * (j - i), 2);
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
        ranked[i] = (RankedPair){p->list[i].question, ranked_right(result[i].margin)};
        if (!by_answer) calibration_add(&e, sigmoid(fabs(result[i].margin)), ranked[i].right);
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
// data set that the model wrote and a verifier or a reward model filtered: DeepSeek R1's third stage.
//
//     prompt     the best answer of each question; a question on which all fail gives none     M answers
//     overall    the M best of all answers, whatever question they belong to
//     random     M answers at random: the control
//
// What "overall" buys with a higher score it pays for with questions: easy ones give many answers, hard ones
// none. Equal scores are settled by the seed: in the order of the file, a 0/1 reward would fill the M places
// from the first questions alone.
//
// Trap: without the control you do not know what the selection did. Training a model on its own unselected
// answers changes something too (another learning rate, other questions); only what goes beyond that is due
// to the reward.
enum { KEEP_PROMPT, KEEP_OVERALL, KEEP_RANDOM };
static const char* const keep_names[] = {"prompt", "overall", "random", NULL};

typedef struct { float score; int place, index; } RankedAnswer;

// By score, the highest first; equal ones by place, which is random.
static int compare_answers(const void* a, const void* b) {
    const RankedAnswer *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score) - (x->score > y->score) : x->place - y->place;
}

// Which answers are kept: kept (count), their indices in rising order; returns how many, M, which is the same
// for all three rules. score (count,K): NaN = not to be kept at all. The best of a question must have a score
// above `above`: 0 for a verifier, -inf for a reward model.
static int keep_answers(int* kept, const float* score, int count, int K, int rule, float above,
                        uint64_t seed) {
    int n = count * K, usable = 0, M = 0, *place = allocate((size_t)n, sizeof(int));
    RankedAnswer* ranked = allocate((size_t)n, sizeof(RankedAnswer));
    Rng rng = random_stream(seed, 0, 0);
    shuffle(place, n, &rng);
    for (int i = 0; i < n; i++)
        if (!isnan(score[i]))
            ranked[usable++] = (RankedAnswer){rule == KEEP_RANDOM ? 0.0f : score[i], place[i], i};
    qsort(ranked, (size_t)usable, sizeof *ranked, compare_answers);
    memset(place, 0, (size_t)n * sizeof(int));               // from here on: 1 = kept
    for (int i = 0; i < count; i++) {
        int best = best_of_n(score + (size_t)i * K, K);
        if (best < 0 || !(score[i * K + best] > above)) continue;
        place[rule == KEEP_PROMPT ? i * K + best : ranked[M].index] = 1;
        M++;
    }
    for (int i = 0, k = 0; i < n; i++)
        if (place[i]) kept[k++] = i;
    free(place), free(ranked);
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

static void lesson_12(int more) {
    (void)more;
    printf("LESSON 12. Recipes (D3 section 8)\n\n"
           "   Question  In which order are the tools of chapters 9 and 10 used, on what?\n"
           "   Formula   stage 1 -> stage 2 -> ..., each from the checkpoint before it\n"
           "   Symbols   SFT supervised fine-tuning; k, M thousand, million\n\n"
           "  stage                         how much, and below it who says what is good\n");
    for (size_t i = 0; i < sizeof recipe_stages / sizeof *recipe_stages; i++) {
        const Stage* s = &recipe_stages[i];
        if (*s->recipe) printf("%s\n", s->recipe);
        printf("  %s  %-26s %s\n     %-26s %s\n", s->stage, s->method, s->size, "", s->feedback);
    }
    TrainOptions t = train_defaults();
    RlOptions o = rl_defaults();
    printf("This project (make run)\n  1  %-26s %d examples (%d updates of %d)\n", "instruction tuning (SFT)",
           t.steps * t.batch_size, t.steps, t.batch_size);
    printf("  2  %-26s %d rollouts per update (%d x %d)\n\n", "RLVR", o.examples_per_step * o.num_samples,
           o.examples_per_step, o.num_samples);
    printf("On the tiny model each is a short script of commands, to be run and changed:\n\n"
           "   docs/recipes/instructgpt.sh   tulu3.sh   r1.sh   r1-zero.sh\n"
           "   docs/recipes/compare.sh       all nine methods from one model\n"
           "   docs/recipes/overoptimize.sh  a reward model that can be fooled; what KL does\n\n"
           "Take away: from 2022 to 2025 the supervised stages grow a hundredfold, and the\n"
           "weight moves to reinforcement learning against a verifier.\n");
}

/* ==========================================================================================================
 * APPENDIX. When are two answers the same?                                          (chapters 5 and 6, D2)
 *
 * The inside of answers_equal, whose two ideas chapter 5 explains: normalize, then evaluate. The calculator
 * of chapter 6 has the same evaluator behind a narrower door.
 *
 *     A.1  Values      exact fractions, or floating point with a bound on its error
 *     A.2  Normalize   an answer becomes a row of tokens; the many spellings of a thing become one token
 *     A.3  Evaluate    tokens become a value at a point; values at many points become a verdict
 *     A.4  Compare     lists, equations, intervals are taken apart; what is left is evaluated
 *     A.5  Arithmetic  the evaluator, for the calculator
 *
 * Followed for x = \dfrac{10}{4}\text{ cm} and 2.5: A.2 makes x = \frac { 10 } { 4 } cm of it, A.4 takes off
 * the name x that the other side leaves out, A.3 divides 10 by 4 and lets cm count as 1, since the other side
 * has no unit, and A.1 finds 5/2 on both sides: equal.
 *
 * It is an ALLOW-LIST. The tables of A.2 hold every spelling, name and unit that is understood. Whatever else
 * an answer says is text: it equals the same text, and it is never evaluated. So a command that nobody
 * thought of (\binom before it had a line here, an arrow, an integral) can only cost a right answer that is
 * spelled in another way; it can't pay for a wrong one. docs/answers.md shows the tables as a list.
 * ======================================================================================================== */
#include <complex.h>
#undef I  // complex.h claims this name; _Complex_I does the same

/* ---- A.1 Values ----
 *
 * Numbers made of + - * / stay exact fractions as long as they fit. Everything else is a complex double with
 * a bound on its rounding error, so that two values can be told apart from two roundings of one value.
 */
typedef struct {
    double complex z;  // the value; NAN where there is none (1/0, ln 0)
    double error;      // bound on the rounding error in z
    int64_t num, den;  // z as an exact fraction in lowest terms, den > 0; both 0 when it isn't known
} Value;

static const double ROUNDING = 0x1p-53;         // half a unit in the last place of a double
static const int64_t LARGE = (int64_t)1 << 62;  // of an exact fraction; the sum of two smaller ones fits
static const Value NO_VALUE = {NAN, 0, 0, 0};

static int has_value(Value a) { return !isnan(creal(a.z)) && !isnan(cimag(a.z)); }
static int is_real(Value a) { return cimag(a.z) == 0; }
static double size_of(double complex z) { return cimag(z) == 0 ? fabs(creal(z)) : cabs(z); }  // hypot is slow
static int64_t times(int64_t a, int64_t b) { return fabs((double)a * (double)b) < 0x1p62 ? a * b : LARGE; }
static int64_t divisor(int64_t a, int64_t b) { return b ? divisor(b, a % b) : a; }  // greatest common one

// The value z; or better num / den, unless den is 0 (not known) or one of them is too LARGE to be trusted.
static Value make_value(double complex z, double error, int64_t num, int64_t den) {
    if (den == 0 || llabs(num) >= LARGE || llabs(den) >= LARGE)
        return (Value){z, error + ROUNDING * size_of(z), 0, 0};
    int64_t common = den == 1 ? 1 : divisor(llabs(num), llabs(den)) * (den < 0 ? -1 : 1);
    double quotient = (double)(num / common) / (double)(den / common);
    return (Value){quotient, ROUNDING * fabs(quotient), num / common, den / common};
}

static Value whole(int64_t n) { return make_value(0, 0, n, 1); }
static Value inexact(double complex z, double error) { return make_value(z, error, 0, 0); }

// The operations carry the error on. (What isn't exact has den = 0, and so has whatever is made of it.)
static Value negate(Value a) { return (Value){-a.z + 0 * _Complex_I, a.error, -a.num, a.den}; }
static Value add(Value a, Value b) {
    int64_t x = times(a.num, b.den), y = times(b.num, a.den);
    int64_t num = x == LARGE || y == LARGE ? LARGE : x + y;
    return make_value(a.z + b.z, a.error + b.error, num, times(a.den, b.den));
}
static Value multiply(Value a, Value b) {
    double complex z = is_real(a) && is_real(b) ? creal(a.z) * creal(b.z) : a.z * b.z;
    double error = a.error * size_of(b.z) + b.error * size_of(a.z);
    return make_value(z, error, times(a.num, b.num), times(a.den, b.den));
}
static Value divide(Value a, Value b) {
    if (b.z == 0 || (!b.den && size_of(b.z) <= b.error)) return NO_VALUE;  // 0, or too near to tell
    double complex z = is_real(a) && is_real(b) ? creal(a.z) / creal(b.z) : a.z / b.z;
    double error = (a.error + b.error * size_of(z)) / size_of(b.z);
    return make_value(z, error, times(a.num, b.den), times(a.den, b.num));
}

// a^b. Up to 64 times we multiply, which keeps fractions exact. A negative real number to the power p/q with
// odd q has a real root, and school means that one: (-8)^(1/3) = -2, not the complex 1 + i sqrt(3).
static Value raise_power(Value a, Value b) {
    double size = size_of(a.z), sign = creal(a.z) < 0 && b.num % 2 ? -1 : 1;
    if (!has_value(a) || !has_value(b) || (size == 0 && creal(b.z) <= 0)) return NO_VALUE;
    if (b.den == 1 && llabs(b.num) <= 64) {
        Value power = whole(1);
        for (int64_t n = llabs(b.num); n > 0; n--) power = multiply(power, a);
        return b.num < 0 ? divide(whole(1), power) : power;
    }
    if (size == 0) return whole(0);
    int root = is_real(a) && is_real(b) && (creal(a.z) > 0 || b.den % 2 == 1);
    double complex z = root ? sign * pow(size, creal(b.z)) : cpow(a.z, b.z);
    double relative = size_of(b.z) * a.error / size + (fabs(log(size)) + 4) * (b.error + 4 * ROUNDING);
    return z == 0 ? NO_VALUE : inexact(z, size_of(z) * relative);
}

// 1 = the same, 0 = different, -1 = rounding leaves no way to tell. Exact fractions are compared exactly, and
// another value may differ by what its rounding explains (two of them by 1e-12 of their size besides, because
// the bounds on the errors of functions are rough). An exact number with more than 12 digits (num and den) is
// no root and no multiple of pi: people write so many when they round. A value of which rounding has left
// nothing, such as 10^30 pi - 10^30 pi, would "equal" every number, and a policy would find that out.
static int compare_values(Value a, Value b) {
    if (a.den && b.den) return a.num == b.num && a.den == b.den;
    double size = fmax(size_of(a.z), size_of(b.z)), slack = 16 * (a.error + b.error);
    if (!isfinite(size)) return a.z == b.z && a.error + b.error == 0;
    if (fmax(fabs((double)a.num * a.den), fabs((double)b.num * b.den)) > 1e12) return 0;
    if (!(slack <= 1e-6 * (1 + size))) return -1;
    return size_of(a.z - b.z) <= slack + (a.den || b.den ? 0 : 1e-12 * size);
}
static int is_zero(Value a) { return size_of(a.z) <= 16 * a.error; }

/* ---- A.2 First idea: normalize ----
 *
 * We read \dfrac{1}{2}, \frac12 and \frac 1 2 as one thing. Each row has the spellings of a thing, of signs a
 * longer one before its own beginning, and last what is read; of the first row, typography, nothing is (it
 * ends in three widths of space). A matrix becomes [[a,b],[c,d]], so that rows and columns need no code of
 * their own. A set is {a,b}: LaTeX's grouping braces look the same, but have no comma in them.
 */
static const char* const SPELLINGS[] = {
    ("\\left \\right \\big \\Big \\bigl \\bigr \\Bigl \\Bigr \\displaystyle \\limits \\! \\, \\; \\: ~ "
     "\\quad \\qquad \\( \\) \\[ \\] \xc2\xa0 \xe2\x80\x89 \xe2\x80\xaf "), "\\\\ ],[",
    "\\frac* \\dfrac \\tfrac \\cfrac \\frac", "½ \\frac12", "¼ \\frac14", "¾ \\frac34", "& and or ,",
    "\\dbinom \\tbinom \\binom", "\\{ \\lbrace {", "\\} \\rbrace }", "\\emptyset \\varnothing ∅ {}",
    "\\langle (", "\\rangle \\rfloor \\rceil )", "\\lfloor floor(", "\\lceil ceil(", "√ sqrt",
    "\\lvert \\rvert \\vert |", "\\ldots \\dots ...", "\\mathrm{e} e", "\\mathrm{i} i", "mph mi/h",
    ("\\begin{matrix} \\begin{pmatrix} \\begin{bmatrix} \\begin{array}{c} \\begin{array}{cc} "
     "\\begin{array}{ccc} \\beginpmatrix [["), "∪ \\cup", "∩ \\cap", "∈ \\in", "π \\pi", "θ \\theta",
    "\\end{matrix} \\end{pmatrix} \\end{bmatrix} \\end{array} \\endpmatrix ]]", "inf infinity oo ∞ \\infty",
    "\\mathbb{R}- (-\\infty,\\infty)\\setminus", "\\mathbb{R} ℝ (-\\infty,\\infty)", "!= ≠ \\ne",
    "\\pm* ± \\pm", "£ \\text{pound}", "^\\circ ^{\\circ} \\degree ° \\text{degree}",
    ("^{th} ^\\text{th} ^{\\text{th}} ^{\\mathrm{th}} ^{st} ^{\\text{st}} ^{\\mathrm{st}} ^{nd} "
     "^{\\text{nd}} ^{\\mathrm{nd}} ^{rd} ^{\\text{rd}} ^{\\mathrm{rd}} \\text{th}"), "dozen {(12)}",
    "hundred {(100)}", "thousand {(1000)}", "million {(1000000)}", "billion {(1000000000)}", "** ^",
    "trillion {(1000000000000)}", "\\sinx sinx \\sin\\!x", "\\cosx cosx \\cos\\!x", "\\tanx tanx \\tan\\!x",
    "\\cotx cotx \\cot\\!x", "\\lnx lnx \\ln\\!x", "\\logx logx \\log\\!x", "\\backslash ∖ \\setminus",
    "\\cdot \\times × · ⋅ *", "\\div ÷ per /", "<= ≤ \\le", ">= ≥ \\ge", "< \\lt", "> \\gt",
    "² ^{2}", "³ ^{3}", "⁴ ^{4}", "⁵ ^{5}", "⁶ ^{6}", "⁷ ^{7}", "⁸ ^{8}", "⁹ ^{9}",
    "⁰ ^{0}", "¹ ^{1}", "− – -", "\\% % \\text{percent}", "\\$ \\text{dollar}", "€ \\text{euro}"};
enum { SPELLING_ROWS = sizeof SPELLINGS / sizeof *SPELLINGS };

// The names: each entry is a kind of token, in the order of the enumeration, with | between its spellings.
// (A sign is its own character as a kind.) Those up to N_INFINITY need no backslash; Greek letters need it
// only when they have two letters (mu is m times u).
enum { F_SIN = 256, F_COS, F_TAN, F_ASIN, F_ACOS, F_ATAN, F_LN, F_LOG, F_EXP, F_CSC, F_SEC, F_COT, F_ABS,
       F_FLOOR, F_CEIL, F_GCD, F_LCM, F_MAX, F_MIN, N_SQRT, N_FRAC, N_BINOM, N_SQUARE, N_CUBIC, N_PI, N_E,
       N_I, N_INFINITY, N_CUP, N_SETMINUS, N_CAP, N_PM, N_MP, N_LT, N_LE, N_GE, N_GT, N_EQ, N_NE, N_IN,
       N_QUOTIENT, N_QUOTE, N_VARIABLE, N_NUMBER, N_TEXT, N_UNIT };
static const char NAMES[] =
    "sin cos tan arcsin|asin arccos|acos arctan|atan ln log|lg exp csc sec cot abs floor ceil gcd lcm max "
    "min sqrt frac binom square|sq cubic pi e i infty cup setminus cap pm mp lt le|leq|leqslant ge|geq|"
    "geqslant gt = ne|neq in // text|textbf|textit|textrm|mathrm|mathsf|mathbf|mbox|hbox|operatorname|"
    "boldsymbol|bm alpha|beta|gamma|delta|epsilon|varepsilon|zeta|eta|theta|vartheta|iota|kappa|lambda|mu|"
    "nu|xi|rho|sigma|tau|upsilon|phi|varphi|chi|psi|omega|Gamma|Delta|Theta|Lambda|Xi|Sigma|Upsilon|Phi|Psi|"
    "Omega|ell";
static const Value CONSTANTS[] = {  // from N_PI to N_INFINITY
    {M_PI, 0x1p-52, 0, 0}, {2.718281828459045235, 0x1p-52, 0, 0}, {_Complex_I, 0, 0, 0}, {INFINITY, 0, 0, 0}};

// f(2) is no product with these letters, but a function of 2. Two small letters are a product, x times y. But
// then on = o n = n o = no; so they are none where they are a whole item and one of these words.
static const char FUNCTION_LETTERS[] = "f g h F G H phi varphi psi zeta Phi Psi Gamma";
static const char SHORT_WORDS[] =
    "no on or is it in if to so do go be by at as am he we me my us up of ok a b c d e";

// The units, without the s of the plural. A single letter is a unit only within \text{...} or behind another
// unit: 5 m is 5 times m, 5 km/h is a speed. What is counted is a unit of its own: 7 apples are not 7 pears.
enum { DOLLAR, EURO, POUND, PERCENT, DEGREE };  // the first ones have rules of their own
static const char UNITS[] =
    "dollar|usd|buck euro|eur pound percent degree|deg th|st|nd|rd unit cm|centimeter|centimetre mm|"
    "millimeter|millimetre km|kilometer|kilometre m|meter|metre in|inch ft|foot|feet yd|yard mi|mile hour|"
    "hr|h min|minute s|sec|second year|yr kg|kilogram|kilo g|gram mg|milligram oz|ounce L|l|liter|litre ml|"
    "mL|milliliter|millilitre gallon|gal quart|qt pint|pt rad|radian C|celsius F|fahrenheit person|people "
    "child|children|kid man|men woman|women fish leaf|leaves mouse|mice goose|geese vertex|vertices cent lb "
    "ton acre day week month time way point item piece student teacher friend boy girl guest customer "
    "player member adult worker employee passenger page book word letter card game ticket stamp sticker "
    "photo picture car truck bus bike bicycle train wheel seat apple orange banana pear tomato potato "
    "carrot egg cookie cake candy chocolate pizza pie slice meal serving cup bottle can jar bag box pack "
    "bucket basket tablespoon teaspoon plate pen pencil marker notebook paper sheet shirt dress shoe sock "
    "hat coat button bead ring balloon marble ball block brick tile shell rock stone stick flower rose tree "
    "seed plant animal dog cat bird chicken cow horse sheep rabbit coin bill token chair table room window "
    "door floor house home building step stair trip round goal class school team group set row column line "
    "segment square circle triangle side edge face angle diagonal digit number integer solution answer "
    "question problem term factor divisor multiple value root zero prime pair subset permutation "
    "combination arrangement path route calorie bit byte packet folder cap branch desk kitten frog snake "
    "bee glass package";

typedef struct {
    int kind;               // a sign, an entry of NAMES, or one of N_NUMBER, N_TEXT, N_UNIT
    const char* text;       // its spelling, length bytes; a known name without its backslash
    int length, slash;      // does it have one?
    int match;              // of ( how far off its partner is; of ) which it is; of a name: its tokens
    int id;                 // which variable or unit it is; of a bracket: its commas minus 1
    Value value;            // of a number
} Token;

// A part of an answer. sign says which of its two values a part with \pm stands for: +1, -1, or 0 = not yet.
typedef struct { const Token *p, *end; int sign; } Slice;

// Two answers that are being compared, in one row of tokens. One of kind 0 stands before and behind each.
typedef struct {
    int count, open, budget;  // how many tokens; the innermost open bracket; how much work may still be done
    int unmatched, money;     // has a bracket no partner? is $ a currency?
    int names, imaginary;     // how many variables; does i appear, so that values need not be real?
    Slice name[MAX_NAMES];    // the variables, in the order of their appearance
    Token token[2 * MAX_TOKENS];
} Comparison;

static void tokenize(Comparison* c, const char* p, const char* end, int quoted);
static int fold(int c, int any_case) { return any_case ? lower_case(c) : c; }

// The word of the list that is the n letters at text; with n = 0 the one that text begins with, and a command
// must stand there whole: \left doesn't begin \leftarrow. NULL = none. Loosely, as for units: capitals don't
// matter, and s or es makes the plural: cups, boxes.
static const char* find_word(const char* list, const char* text, int n, int loosely) {
    for (const char* w = strchr(list, fold(*text, loosely)); w; w = strchr(w + 1, fold(*text, loosely))) {
        int i = 1;
        if (w > list && w[-1] != ' ' && w[-1] != '|') continue;
        while (w[i] && w[i] != ' ' && w[i] == fold(text[i], loosely)) i++;
        int s = i + (i == n - 2 && text[i] == 'e'), plural = loosely && i > 1 && s == n - 1 && text[s] == 's';
        int ends = n ? i == n || plural : *w != '\\' || !is_letter(w[i - 1]) || !is_letter(text[i]);
        if (ends && (!w[i] || w[i] == ' ' || w[i] == '|')) return w;
    }
    return NULL;
}

// The number of the entry of NAMES or UNITS that has the n letters at word, -1 = none: 0 for the first one.
static int find_entry(const char* list, const char* word, int n, int is_unit) {
    const char* at = find_word(list, word, n, is_unit);
    int entry = at ? 0 : -1;
    for (; at && at > list; at--) entry += at[-1] == ' ';
    return entry;
}
static int look_up(const char* word, int n) {  // the kind of a name; N_TEXT = it is none
    int entry = n > 1 ? find_entry(NAMES, word, n, 0) : -1;
    return entry < 0 ? N_TEXT : F_SIN + entry;
}

static int is_open(int kind) { return kind == '(' || kind == '[' || kind == '{' || kind == '|'; }
static int is_close(int kind) { return kind == ')' || kind == ']' || kind == '}'; }
static int is_function(int kind) { return kind >= F_SIN && kind <= F_MIN; }
static int is_plus_minus(int kind) { return kind == '+' || kind == '-' || kind == N_PM || kind == N_MP; }
static int is_operand(int kind) {  // may a value end with it? (a number, a name, a closing bracket, !)
    if (kind < F_SIN) return kind && !strchr("+-*/^,([{|", kind);
    return !is_function(kind) && (kind < N_CUP || kind > N_QUOTIENT);
}
static int last_kind(const Comparison* c) { return c->token[c->count - 1].kind; }

// Appends a token. A bracket finds its partner here; until then match says which bracket is open around it,
// and the token in front of the answer is around all. (There is room: no byte becomes more than two tokens.)
static Token* push(Comparison* c, int kind, const char* text, int length) {
    Token *k = &c->token[c->count++], *open = &c->token[c->open];
    *k = (Token){.kind = kind, .text = text, .length = length, .match = c->open, .id = -1};
    if (is_open(kind)) c->open = (int)(k - c->token);
    if (kind == ',') open->id++;
    if (!is_close(kind)) return k;
    c->unmatched |= !open->kind;
    c->open = open->match;
    open->match = (int)(k - open);
    return k;
}

// Pushes what is read for the spelling at p, a word of n letters or (n = 0) anything else. Returns its
// length, 0 = there is none, or it is spelled so already. (Behind the last row of a matrix none begins.)
static int push_spelling(Comparison* c, const char* p, int n) {
    for (int row = 0; row < SPELLING_ROWS; row++) {
        const char* at = find_word(SPELLINGS[row], p, n, 0);
        if (!at) continue;
        if (!strchr(at, ' ')) return 0;  // the last of the row
        const char* to = strrchr(at, ' ') + 1;
        int length = (int)strcspn(at, " ");
        int no_row = !strcmp(to, "],[") && !strncmp(p + length + strspn(p + length, " \n"), "\\end", 4);
        if (!no_row) tokenize(c, to, to + strlen(to), 0);
        return length;
    }
    return 0;
}

// The length of the thousands separator at p, 0 = none. Within brackets a comma separates parts: (100,200).
static int match_separator(const char* p, int in_brackets) {
    const char* at = !*p ? NULL : find_word(",\\! {,} \\, \\! ,", p, 0, 0);
    size_t n = at ? strcspn(at, " ") : 0;
    if (n > 1) n += strspn(p + n, " ");
    return n > (size_t)in_brackets && strspn(p + n, "0123456789") == 3 ? (int)n : 0;
}

// Pushes the number at p: 12, 1,000, .5, 1e-3; of \frac12 one digit. Returns its length. One with more digits
// than fit is text: 0.3333333333333333333 is not 1/3, and a double couldn't tell.
static int push_number(Comparison* c, const char* p) {
    Token* k = push(c, N_NUMBER, p, 0);
    int64_t num = 0, den = 1;
    const Token* before = k - 1 - (k[-1].kind == N_NUMBER);  // before this argument, or the one before it
    if (is_close(k[-1].kind) && k[-1].match > 0) before = &c->token[k[-1].match - 1];
    int root = before->kind == N_SQRT && before->slash;
    int one_digit = root || before->kind == N_FRAC || before->kind == N_BINOM;
    for (int group = 1, dot = 0; is_digit(*p) || (*p == '.' && !dot && is_digit(p[1])); group++, p++) {
        if (one_digit && p > k->text) break;
        dot |= *p == '.';
        if (*p == '.') continue;
        num = times(num, 10) + *p - '0';
        den = times(den, dot ? 10 : 1);
        int separator = dot || group > 3 || !num ? 0 : match_separator(p + 1, c->token[c->open].kind != 0);
        p += separator;
        group = separator ? 0 : group;
    }
    k->value = make_value(strtod(k->text, NULL), 0, num, den);
    k->kind = k->value.den ? N_NUMBER : N_TEXT;
    int n, length = 0, power = (*p == 'e' || *p == 'E') && !is_space(p[1]);
    power = power && sscanf(p + 1, "%4d%n", &n, &length) == 1;
    if (power && (length > 2 || is_digit(p[1]) || (p[1] == '-' && *p == 'e'))) {  // 2E-1 and 2e+1 are sums
        k->value = multiply(k->value, raise_power(whole(10), whole(n)));
        p += 1 + length;
    }
    k->length = (int)(p - k->text);
    return k->length;
}

// Pushes the first token of the n letters at p, bare or (quoted) within \text{...}; returns how many it took.
// A run of letters is a known name or a unit as a whole, or not at all; else longer runs are words, and so is
// everything quoted. What could also be something else, as cm or min, is a unit only where one may stand:
// behind another one, or behind a value at the end. "and" and "or" are the comma of a list. Two letters are a
// product, unless they are a whole item and a listed word or like Rh; dx and the segment AB are one name.
static int push_word(Comparison* c, const char* p, int n, int quoted) {
    int last = last_kind(c), kind = look_up(p, n), next = p[n + (int)strspn(p + n, " ")];
    int joins = !!find_word("and or", p, n, 0);
    if (joins && last == ',') return n;
    if (n > 1 && (!joins || (last && (quoted || is_space(p[-1])))) && push_spelling(c, p, n)) return n;
    int follows = last == N_UNIT || (last == '/' && c->token[c->count - 2].kind == N_UNIT);
    int ends = n > 1 && is_operand(last) && (!next || strchr(",.^/)}", next));
    int bare = kind <= N_INFINITY, certain = !bare && (quoted || n > 2);
    int unit = certain || ends || follows ? find_entry(UNITS, p, n, n > 2) : -1;
    if (unit >= 0) kind = N_UNIT;
    else if (certain && (quoted || kind != N_VARIABLE)) kind = N_TEXT;
    else if (!certain && !bare) {
        int first = !last || last == ',' || is_open(last) || (last >= N_LT && last <= N_IN);
        int alone = n == 2 && first && (!p[2] || !strchr("+-*/^(|_!'", p[2]));
        int capitals = (*p <= 'Z') + (n == 2 && p[1] <= 'Z');
        int word = alone && (capitals == 1 || find_word(SHORT_WORDS, p, 2, 1));
        if (!word && capitals < 2 && !(n == 2 && *p == 'd' && strchr("xyztuv", p[1]))) n = 1;
        int constant = n == 1 && p[1] != '_' ? *p == 'e' ? N_E : *p == 'i' ? N_I : 0 : 0;  // e_1 is none
        kind = word ? N_TEXT : constant ? constant : N_VARIABLE;
    }
    push(c, kind, p, n)->id = unit;
    return n;
}

// Pushes the command at p, \pi or \text{...}; an unknown one is text, with its backslash. Returns its length.
static int push_command(Comparison* c, const char* p, const char* end) {
    int n = 0;
    while (is_letter(p[n + 1])) n++;
    int kind = look_up(p + 1, n);
    if (kind == N_TEXT && !strncmp(p, "\\mbox", 5)) return 5;  // \mboxcm has lost its braces
    const char* open = p + n + 1 + strspn(p + n + 1, " ");
    if (find_word("mathbf boldsymbol bm", p + 1, n, 0) && !is_digit(open[1])) kind = N_TEXT;  // a vector
    const char* close = kind == N_QUOTE && *open == '{' ? find_closing_brace(open, end) : NULL;
    if (close) tokenize(c, open + 1, close, 1);
    else if (kind >= N_QUOTE && kind != N_VARIABLE) push(c, N_TEXT, p, n + 1);
    else push(c, kind, p + 1, n)->slash = 1;
    return close ? (int)(close + 1 - p) : n + 1;
}

// Pushes the tokens of [p, end), a part of a text that ends in 0. What isn't understood remains as a sign.
static void tokenize(Comparison* c, const char* p, const char* end, int quoted) {
    for (int n; p < end; p += n) {
        int last = last_kind(c);
        for (n = 0; p + n < end && is_letter(p[n]);) n++;
        if (n == 1 && *p == 'U' && is_close(last) && strspn(p + 1, " ([")) push(c, N_CUP, p, 1);
        else if (n) n = push_word(c, p, n, quoted);
        else if (is_digit(*p) || (*p == '.' && is_digit(p[1]))) n = push_number(c, p);
        else if (!strchr(" +-/=()[]{},._|", *p) &&  // these begin none
                 (last == N_NUMBER || strncmp(p, "^{", 2) || p[2] == '\\') && (n = push_spelling(c, p, 0))) {
        } else if (*p == '\\' && is_letter(p[1])) n = push_command(c, p, end);
        else if (*p == '_' && (is_letter(p[1]) || is_digit(p[1]))) {  // 52_8 is 52_{8}, x_n is x_{n}
            for (n = 2; is_digit(p[1]) && is_digit(p[n]);) n++;
            push(c, '_', p, 1);
            push(c, '{', "{", 1);
            tokenize(c, p + 1, p + n, quoted);
            push(c, '}', "}", 1);
        } else {
            int skip = is_space(*p) || *p == '$' || (*p == '\\' && p[1] == ' ');
            skip |= *p == '.' && (last == N_UNIT || last == N_SQUARE);  // sq. ft
            int closes = *p == '|' && is_operand(last) && c->token[c->open].kind == '|';
            n = *p == '/' && p[1] == '/' ? 2 : 1;  // 7//2 is 3
            int kind = n == 2 ? N_QUOTIENT : closes ? ')' : *p == '=' ? N_EQ : (unsigned char)*p;
            if (*p == '$' && c->money) push_word(c, "dollar", 6, 1);
            else if (!skip) push(c, kind, p, n);
        }
    }
}

static Slice read_answer(Comparison* c, const char* answer) {  // appends its tokens to those that are there
    int dollars = 0, first = c->count + 1;
    for (const char* p = answer; *p; p++) dollars += *p == '$' && (p == answer || p[-1] != '\\');
    c->money = dollars % 2;  // a pair of $ is LaTeX's
    c->open = c->count;
    push(c, 0, "", 0);
    tokenize(c, answer, answer + strlen(answer), 0);
    if (last_kind(c) == '.') c->count--;  // the full stop of the sentence that the answer was
    c->unmatched |= c->open != first - 1;
    push(c, 0, "", 0);
    return (Slice){c->token + first, c->token + c->count - 1, 0};
}

// Numbers are the same by value, names by kind, words by letters. Capitals don't matter in words of three
// letters or more (in what may be names, AB and r, they do), in the listed short ones, nor in \text{(c)}.
static int same_token(const Token* a, const Token* b) {
    if (a->kind == N_NUMBER && b->kind == N_NUMBER) return compare_values(a->value, b->value) == 1;
    if (a->kind == b->kind && a->kind < N_VARIABLE) return 1;
    int any_case = a->kind >= N_TEXT && b->kind >= N_TEXT &&
                   (a->length > 2 || find_word(SHORT_WORDS, a->text, a->length, 1));
    int i = 0;
    while (i < a->length && fold(a->text[i], any_case) == fold(b->text[i], any_case)) i++;
    return i == a->length && i == b->length;
}

// (A text with \pm equals its twin of the other sign here. That is right: both lists contain both.)
static int same_text(Slice a, Slice b) {
    for (; a.p < a.end && b.p < b.end && same_token(a.p, b.p); a.p++) b.p++;
    return a.p == a.end && b.p == b.end;
}

/* ---- A.3 Second idea: evaluate ----
 *
 * A recursive-descent parser. It builds no tree: it computes while it reads, and a variable is simply its
 * value at the current point. For another point the tokens are read once more.
 *     primary = number | variable | constant | unit | ( sum ) | |sum| | \frac A B | \binom A B | \sqrt[n] A
 *             | function argument
 *     power   = sign primary ! ^ power
 * and then the operators, by their strength. 2x is 2*x, -x^2 is -(x^2), 2^3^2 is 2^(3^2), and the value of an
 * equation is its left side minus its right one. A quantity is a product, 5 times cm: its unit counts as 1
 * where only one of two answers has one, and else as a number of its own, so that cm^2 isn't cm.
 */
enum { EQUATION, SUM, PRODUCT, ARGUMENT, POWER, EXPONENT };  // from the weakest to the strongest

typedef struct {
    const Token *p, *end;    // what is still to be read
    int point, sign, units;  // which evaluation point; +1 or -1 for \pm; does the unit count?
    int nesting, arguments;  // levels of parse; arguments of functions that we are in
    int ended, failed;       // a unit was read, so that only units may follow; this is no expression
} Parser;

static Value parse(Parser* s, int level);
static Value parse_primary(Parser* s);
static int peek(const Parser* s) { return s->p < s->end && !s->failed ? s->p->kind : 0; }
static int accept(Parser* s, int kind) {
    if (peek(s) != kind) return 0;
    s->p++;
    return 1;
}
static Value fail_parse(Parser* s) {
    s->failed = 1;
    return NO_VALUE;
}

static Value apply_function(int function, Value a) {
    static double (*const of_real[])(double) = {sin, cos, tan, asin, acos, atan, log, log, exp};
    static double complex (*const of_complex[])(double complex) = {csin, ccos, ctan, casin, cacos, catan,
                                                                   clog, clog, cexp};
    double size = size_of(a.z);
    if (function == F_ABS) return make_value(size, a.error, llabs(a.num), a.den);
    if (function == F_CEIL) return negate(apply_function(F_FLOOR, negate(a)));
    if (function == F_COT) return divide(apply_function(F_COS, a), apply_function(F_SIN, a));
    if (function == F_CSC) return divide(whole(1), apply_function(F_SIN, a));
    if (function == F_SEC) return divide(whole(1), apply_function(F_COS, a));
    if (function == F_FLOOR && a.den) return whole(a.num / a.den - (a.num % a.den < 0));  // C rounds toward 0
    if (function == F_FLOOR)  // 2.9999999999999996 is 3
        return is_real(a) && size < 1e9 ? whole((int64_t)floor(creal(a.z) + 9 * a.error)) : NO_VALUE;
    if ((function == F_LN || function == F_LOG) && size <= a.error) return NO_VALUE;
    double complex z = is_real(a) ? of_real[function - F_SIN](creal(a.z)) : NAN;
    if (isnan(creal(z))) z = of_complex[function - F_SIN](a.z);  // as of ln(-1)
    // an error e in x becomes about f'(x) e; 1 + |f|^2 and 1/|x| bound these slopes well enough
    double slope = (1 + size_of(z) * size_of(z)) * fmax(1, size > 0 ? 1 / size : 1);
    return inexact(z, a.error * slope + 4 * ROUNDING * (1 + size_of(z)));
}

// Functions of two arguments: a fraction; n (n-1) ... (n-k+1) / k! for a whole k; the larger or smaller real
// number; the greatest common divisor or least common multiple of whole numbers. Of variables, gcd(a,b) is
// something that gcd(b,a) is too, and nothing else: any symmetric function will do.
static Value combine(int function, Value a, Value b) {
    Value value = whole(1);
    if (!has_value(a) || !has_value(b)) return NO_VALUE;
    if (function == N_FRAC) return divide(a, b);
    if (function == N_BINOM) {
        if (b.den != 1 || b.num < 0 || b.num > 100) return NO_VALUE;
        for (int i = 0; i < b.num; i++) value = divide(multiply(value, add(a, whole(-i))), whole(i + 1));
        return value;
    }
    if ((function == F_MAX || function == F_MIN) && is_real(a) && is_real(b))
        return (creal(a.z) > creal(b.z)) == (function == F_MAX) ? a : b;
    if (!a.den || !b.den) return inexact(csin(a.z + b.z + function) + ccos(a.z * b.z), a.error + b.error);
    if (a.den != 1 || b.den != 1 || !a.num || !b.num) return NO_VALUE;
    int64_t common = divisor(llabs(a.num), llabs(b.num));
    return whole(function == F_GCD ? common : times(llabs(a.num), llabs(b.num) / common));
}

// ( sum ), and the same with { } and [ ]; |sum|. Functions of several arguments combine them: \max(1, 2, 3).
static Value parse_group(Parser* s, int function) {
    int open = s->p++->kind, close = open == '[' ? ']' : open == '{' ? '}' : ')', ended = s->ended;
    Value value = parse(s, SUM);
    while (function >= F_GCD && accept(s, ',')) value = combine(function, value, parse(s, SUM));
    if (!accept(s, close) || s->ended != ended) return fail_parse(s);
    return open == '|' ? apply_function(F_ABS, value) : value;
}

// A fraction right behind a whole number makes a mixed number: 3\frac{1}{2} and 3 1/2 are 3.5. Only a proper
// one of two numbers does: 3\frac{x}{2} is a product, and 1\frac{3}{2} could be a product or a slip.
static Value parse_number(Parser* s) {
    Value first = s->p++->value;
    int before = s->p[-2].kind, in = is_operand(before) ? before != N_UNIT : before == '^' || before == '/';
    if (in || first.den != 1 || (peek(s) != N_FRAC && peek(s) != N_NUMBER)) return first;
    Parser ahead = *s;
    Value part = parse_primary(&ahead);
    if (peek(s) == N_NUMBER) part = accept(&ahead, '/') ? divide(part, parse_primary(&ahead)) : NO_VALUE;
    if (!part.den || ahead.p - s->p > 7) return first;  // \frac { 1 } { 2 }
    if (ahead.failed || part.num <= 0 || part.num >= part.den) return fail_parse(s);
    s->p = ahead.p;
    return add(first, part);
}

// The value of variable number j of this comparison at one of 32 points. It must not hang on the letter,
// and it must tell x from |x|, and 3-x from |x-3|. So the five bits of the point, turned round by j places,
// are the sign and one of 16 sizes: every variable takes each size with either sign, and the first five
// have all their combinations of signs. From the sixth variable on the bits are sums of bits of the point.
// (Noise makes coincidences unlikely; some values are whole, since ceil(x) is floor(x) + 1 at all others.)
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

// A unit stands at the end, behind a value or another unit, 5 m/s; a currency in front: $5. Degrees in the
// argument of a function are a number, sin 30^\circ = 1/2; a unit anywhere else makes the answer plain text.
static Value parse_unit(Parser* s) {
    const Token* k = s->p++;
    int behind = is_operand(k[-1].kind) || (k[-1].kind == '/' && k[-2].kind == N_UNIT);
    int currency = !behind && s->nesting == 1 && k->id <= POUND;
    if (behind && s->arguments && k->id == DEGREE) return inexact(M_PI / 180, 0);
    if ((!behind && !currency) || s->arguments) return fail_parse(s);
    s->ended = !currency;
    Value value = s->units ? inexact(1 + (double)mix_u64((uint64_t)k->id + 1) * 0x1p-64, 0) : whole(1);
    if (s->units && k->id == PERCENT) value = divide(whole(1), whole(100));
    return currency ? multiply(value, parse(s, POWER)) : value;
}

// sin(x), \sin 2x, \sin^2 x, \sin^{-1} x (the arcsine), \log_{2} 8. A log without a base has base 10.
static Value parse_function(Parser* s) {
    Value base = whole(10), exponent = whole(1);
    int function = s->p++->kind, several = function >= F_GCD;
    if (function == F_LOG && accept(s, '_')) base = parse_primary(s);
    if (accept(s, '^')) exponent = parse_primary(s);
    int inverse = exponent.den == 1 && exponent.num == -1 && function <= F_TAN;  // \sin^{-1} is the arcsine
    if ((several && !is_open(peek(s))) || (exponent.num == -1 && !inverse)) return fail_parse(s);
    s->arguments++;
    Value value = is_open(peek(s)) ? parse_group(s, function) : parse(s, ARGUMENT);
    s->arguments--;
    if (!several) value = apply_function(inverse ? function + F_ASIN - F_SIN : function, value);
    if (function == F_LOG) value = divide(value, apply_function(F_LN, base));
    return inverse ? value : raise_power(value, exponent);
}

static Value parse_primary(Parser* s) {
    const Token* k = s->p;
    int kind = peek(s), unit = kind == N_UNIT || kind == N_SQUARE || kind == N_CUBIC;
    if (!kind || (s->ended && !unit && k[-1].kind != '^' && k[-1].kind != '{')) return fail_parse(s);
    if (kind == N_NUMBER) return parse_number(s);
    if (kind == N_UNIT) return parse_unit(s);
    if (is_open(kind)) return parse_group(s, 0);
    if (is_function(kind)) return parse_function(s);
    s->p++;
    if (kind >= N_PI && kind <= N_INFINITY) return CONSTANTS[kind - N_PI];
    if (kind == N_FRAC || kind == N_BINOM) {
        Value above = parse_primary(s);
        return combine(kind, above, parse_primary(s));
    }
    if (unit) return raise_power(parse_primary(s), whole(kind == N_CUBIC ? 3 : 2));  // square inches
    if (kind == N_SQRT) {  // \sqrt2, \sqrt[3]{2}, sqrt 12. (\sqrt12 is the root of 1 and a 2: text.)
        Value index = peek(s) == '[' ? parse_group(s, 0) : whole(2);
        return raise_power(parse_primary(s), divide(whole(1), index));
    }
    if (kind != N_VARIABLE || k->id < 0 || s->end - k < k->match) return fail_parse(s);
    s->p = k + k->match;
    return inexact(variable_value(k->id, s->point), 0);
}

// Reads a power, and behind it operators of this strength and stronger ones. A sign is read with the term
// behind it: a - b is a plus -b. LaTeX has no second exponent behind one in braces: x^{2}^3 is no expression.
// A factor may begin without a sign of multiplication, 2x, but never with a digit: x2 has two readings. A
// function without parentheses, \sin 2x, applies to what stands before the next operator, function or unit.
static Value parse(Parser* s, int level) {
    int sign = 1;
    if (++s->nesting > MAX_NESTING) return fail_parse(s);
    for (; is_plus_minus(peek(s)); s->p++)
        sign *= peek(s) == '-' ? -1 : peek(s) == N_PM ? s->sign : peek(s) == N_MP ? -s->sign : 1;
    const Token* start = s->p;
    Value value = parse_primary(s);
    if (accept(s, '!')) {
        int64_t n = value.den == 1 && value.num >= 0 && value.num <= 20 ? value.num : -1;
        value = n < 0 ? fail_parse(s) : whole(1);
        for (int64_t i = 2; i <= n; i++) value = multiply(value, whole(i));
    }
    if (accept(s, '^')) {
        if (level == EXPONENT && start->kind == '{') return fail_parse(s);
        value = raise_power(value, parse(s, EXPONENT));
        int letter = !!find_word(FUNCTION_LETTERS, start->text, start->length, 0);
        if (letter && peek(s) == '(') return fail_parse(s);  // f^{-1}(2)
    }
    if (sign < 0) value = negate(value);
    for (int kind = peek(s); kind; kind = peek(s)) {
        int factor = kind == N_VARIABLE || kind == N_UNIT || (kind >= F_SIN && kind <= N_INFINITY);
        int limit = is_function(kind) || (kind == N_UNIT && s->p->id != DEGREE) ? ARGUMENT : POWER;
        factor = (factor || (kind == '{' ? s->p[1].kind != N_NUMBER : is_open(kind))) && level < limit;
        if (level <= SUM && is_plus_minus(kind)) {  // a number hides no smaller one: 2^{100} - 1 has no value
            Value term = parse(s, PRODUCT), sum = add(value, term);
            double x = size_of(value.z), y = size_of(term.z), small = fmin(x, y);
            value = !s->point && !sum.den && small > 0 && small < 1e-10 * fmax(x, y) ? NO_VALUE : sum;
        } else if (factor || (level <= PRODUCT && accept(s, '*'))) value = multiply(value, parse(s, POWER));
        else if (level <= PRODUCT && accept(s, '/')) value = divide(value, parse(s, POWER));
        else if (level <= PRODUCT && accept(s, N_QUOTIENT))
            value = apply_function(F_FLOOR, divide(value, parse(s, POWER)));
        else if (level == EQUATION && accept(s, N_EQ)) value = add(value, negate(parse(s, SUM)));
        else break;
    }
    s->nesting--;
    return value;
}

// The value of an expression at a point: 1 = it has one, 0 = none at this point, -1 = it is no expression. (A
// value that is infinite without rounding error is infinity itself; an overflow has an infinite error.)
static int evaluate(Value* value, Slice text, int level, int point, int units) {
    Parser s = {.p = text.p, .end = text.end, .point = point, .sign = text.sign, .units = units};
    *value = parse(&s, level);
    if (s.failed || s.p < s.end) return -1;
    return isfinite(value->error) && has_value(*value);
}

// The first token of a kind from first to last, NULL = none: outside of brackets, or (anywhere) of sets.
static const Token* find_token(Slice s, int first, int last, int anywhere) {
    for (const Token* k = s.p; k < s.end; k++) {
        if (k->kind >= first && k->kind <= last) return k;
        if (is_open(k->kind) && (!anywhere || (k->kind == '{' && k->id >= 0))) k += k->match;
    }
    return NULL;
}

// Are a and b the same at all points? As expressions f = g must hold. Two equations f = 0 and g = 0 are the
// same when f is a constant times g, that is f(0) g(p) = f(p) g(0) at all points p. Numbers need only one
// point. Points without a value don't count, nor, unless the answers name i, a difference where neither is
// real, as sqrt(x^3) and x sqrt(x) at -2: variables are real.
static int same_at_all_points(Slice a, Slice b, int level, int units, const Comparison* c) {
    Value f, g, f0 = whole(1), g0 = f0;
    int compared = 0, equations = level == EQUATION, points = c->names ? EVALUATION_POINTS : 1;
    for (int point = 0; point < points; point++) {
        int has_f = evaluate(&f, a, level, point, units), has_g = evaluate(&g, b, level, point, units);
        if (has_f < 0 || has_g < 0) return 0;
        if (!has_f || !has_g || (equations && is_zero(f) && is_zero(g))) continue;  // 0 = 0 says nothing
        if (equations && compared == 0) {  // the first point at which both have a value
            if (is_zero(f) || is_zero(g)) return 0;
            f0 = f;
            g0 = g;
        }
        int same = equations ? compare_values(multiply(f0, g), multiply(f, g0)) : compare_values(f, g);
        if (!same && (c->imaginary || is_real(f) || is_real(g))) return 0;
        compared += same == 1;
    }
    return compared >= (c->names || equations ? 4 : 1);  // for numbers one point is all there is
}

/* ---- A.4 Compare ----
 *
 * An answer is taken apart from the outside. A name that only one of two equal answers has comes off, x = 5,
 * and so do brackets around all of it. What is left has a shape, and the shape says how the parts are
 * compared, each of them in this way again:
 *
 *     3, 5   x = 1 \text{ or } x = 2      a list, the parts in any order; \pm makes two of one
 *     \{3, 5\}                            a set: each part of one has a partner in the other
 *     (0,1) \cup [2,3], \cap              in any order
 *     (3,5)   [[1,2],[3,4]]               in order, with the same brackets; A \setminus B is in order, too
 *     x > 3   0 < x \le 5                 an inequality for a name is the interval (3,oo) or (0,5]
 *     2x < y + 1 \le 7                    other relations: in order, written so that they rise
 *     2\pi + 1                            no parts: an expression or words
 * Besides, two equations are the same when they are at all points. What fits no rule is unequal.
 */
typedef struct {
    Slice name;              // what a value is given to: x of x = 5, x of x > 3, S of S = \{1,2\}
    int relation;            // and how: = or \in; without a name its own sign
    int open, close;         // the shape: two brackets, or what stands between the parts; 0 = an expression
    int parts;               // how many; 0 = too many, or of two kinds, as in A \cup B \cap C: unequal
    Slice part[MAX_ITEMS + 1];   // one more: \pm makes two of the last
} Item;

// Is all of s in one bracket? 0 = no, 1 = it only groups, (5), 2 = its parts count: (1,2), {1,2}, [[1,2]].
static int find_bracket(Slice s) {
    if (s.end - s.p < 3 || !is_open(s.p->kind) || s.p->kind == '|' || s.p + s.p->match != s.end - 1) return 0;
    return s.p->id >= 0 || (s.p->kind == '[' && s.p[1].kind == '[') ? 2 : 1;
}
static Slice inside(Slice s) { return (Slice){s.p + 1, s.end - 1, s.sign}; }
static Slice peel(Slice s) {  // takes off what only groups: (5) is 5, ([[1]]) a matrix; {{}} isn't {}
    while (find_bracket(s) && (s.p->kind == '[' ? s.p[1].kind == '[' && s.p[2].kind == '['
                                                : find_bracket(s) == 1 && s.p[1].kind != '{'))
        s = inside(s);
    return s;
}

// Numbers the names. A name is a letter or a Greek letter with what belongs to it: primes, a subscript
// (a_{n-1} is not a_{n+1}), and the bracket of a function. Is f(2) a product? Before a sum it is one, x(y+1),
// unless people use the letter for functions; else nobody writes a product so.
static void find_names(Comparison* c) {
    for (Token* k = c->token; k < c->token + c->count; k++) {
        const Token* end = k + 1;
        c->imaginary |= k->kind == N_I;
        if (k->kind != N_VARIABLE) continue;
        while (end->kind == '\'') end++;
        if (end->kind == '_' && end[1].kind == '{') end += end[1].match + 2;
        int call = end->kind == '(', letter = !!find_word(FUNCTION_LETTERS, k->text, k->length, 0);
        for (const Token* p = end + 2; call && !letter && p < end + end->match; p++)
            call = !is_plus_minus(p->kind);  // x(y+1) is a product, but a sign in front makes no sum: f(-1)
        Slice name = {k, call ? end + end->match + 1 : end, 0};
        int j = 0;
        while (j < c->names && !same_text(c->name[j], name)) j++;
        if (j == MAX_NAMES) return;
        if (j == c->names) c->name[c->names++] = name;
        k->id = j;
        k->match = (int)(name.end - k);
        k += k->match - 1;
    }
}

// Is s a name that a value may be given to: x, x_{1}, \theta, f(x), \text{Area}, (p,q)? Not xy, not \sin(x).
static int is_name(Slice s) {
    if (s.p >= s.end) return 0;
    if (s.p->kind >= N_TEXT) return s.end - s.p == 1 && *s.p->text != '\\';
    if (s.p->kind == N_VARIABLE) return s.p->match == s.end - s.p;
    int names = find_bracket(s) == 2 && s.p->kind == '(';
    for (const Token* k = s.p + 1; names && k < s.end - 1; k += k->kind == ',' ? 1 : k->match)
        names = k->kind == ',' || k->kind == N_VARIABLE;
    return names;
}

// Cuts s at the tokens from first to last outside of brackets; each stands right behind its part. An item
// with \pm counts as two, one for each sign. Returns how many parts, 0 = too many, or an item with two \pm.
static int split(Slice* part, Slice s, int first, int last) {
    const Token* cut;
    int n = 0;
    do {
        cut = find_token(s, first, last, 0);
        Slice item = {s.p, cut ? cut : s.end, s.sign};
        const Token* sign = s.sign ? NULL : find_token(item, N_PM, N_MP, 1);  // two signs: four values
        if (sign && find_token((Slice){sign + 1, item.end, 0}, sign->kind, sign->kind, 1)) return 0;
        if (sign) part[n++] = (Slice){item.p, item.end, -1};
        part[n++] = (Slice){item.p, item.end, sign ? 1 : s.sign};
        s.p = cut ? cut + 1 : s.end;
    } while (cut && n < MAX_ITEMS);
    return cut ? 0 : n;
}

// Reads the relations of s into r, at most two. Returns what is still to be read, the value in x = value, or
// an empty slice when the shape is known: an inequality for a name becomes an interval, other ones stay.
static Slice read_relations(Item* r, Slice s) {
    static const Token infinity[2] = {{.kind = '-', .text = "-"}, {.kind = N_INFINITY, .text = "oo"}};
    Slice side[MAX_ITEMS + 1], *part = r->part;
    int n = split(side, s, N_LT, N_IN);
    r->parts = n > 3 ? 0 : n;
    int first = side[0].end->kind, second = n == 3 ? side[1].end->kind : 0;
    int falls = (first == N_GT || first == N_GE) && second <= N_GT;
    for (int i = 0; i < n; i++) part[i] = side[falls ? n - 1 - i : i];
    r->open = !falls ? first : N_LT + N_GT - (second ? second : first);  // > becomes <, and >= <=: all rise
    r->close = !falls || !second ? second : N_LT + N_GT - first;
    int at = n == 3 || !is_name(part[0]);  // the part that may be a name: x of x < 5, 5 > x, 3 < x < 5
    int value = n == 2 && (first == N_EQ || (first == N_IN && !at));
    int interval = r->open <= N_LE && r->close <= N_LE;
    r->relation = interval ? N_IN : n == 2 ? first : 0;
    if (!r->parts || !is_name(part[at]) || (!value && !interval)) return (Slice){0};
    r->name = part[at];
    if (value) return part[!at];
    part[at] = n == 3 ? part[2] : (Slice){infinity + at, infinity + 2, 0};  // -oo below, or oo above
    r->close = (at ? r->close : r->open) == N_LE ? ']' : ')';
    r->open = at && r->open == N_LE ? '[' : '(';
    r->parts = 2;
    return (Slice){0};
}

static void read_item(Item* r, Slice s) {
    s = peel(s);
    *r = (Item){.open = ',', .close = ','};
    r->parts = split(r->part, s, ',', ',');
    if (r->parts != 1) return;
    if (find_token(s, N_LT, N_IN, 0)) s = peel(read_relations(r, s));
    if (!s.p) return;
    const Token* operator = find_token(s, N_CUP, N_CAP, 0);
    int tuple = !operator && find_bracket(s) == 2, separator = operator ? operator->kind : ',';
    int mix = operator && (find_token(s, N_CUP, separator - 1, 0) || find_token(s, separator + 1, N_CAP, 0));
    r->open = operator ? separator : tuple ? s.p->kind : 0;
    r->close = operator ? separator : tuple ? s.end[-1].kind : 0;
    r->parts = mix ? 0 : split(r->part, tuple ? inside(s) : s, separator, separator);
}

// Two items without parts. A unit that only one side names may be left out (90 for 90^\circ), two different
// ones never agree. As percent is 1/100 where units count, 50\% is 50 and 1/2: people write both when asked
// for percent. So equality is not transitive here: 50 is not 1/2.
static int compare_expressions(Slice a, Slice b, const Comparison* c) {
    if (same_text(a, b)) return a.p < a.end;
    int units = (find_token(a, N_UNIT, N_UNIT, 1) != NULL) + (find_token(b, N_UNIT, N_UNIT, 1) != NULL);
    int same = same_at_all_points(a, b, SUM, 0, c);
    return !units || same == (units == 1) ? same : same_at_all_points(a, b, SUM, 1, c);
}

static int compare_item(Slice a, Slice b, int strict, Comparison* c);  // strict: no name may be left out
// Have the parts of a list names, as in x=2, y=3? 0 = none, 1 = there is one name (x = 2 or 3), 2 = several.
static int count_names(const Item* list) {
    Item item;
    Slice first = {0};
    int names = 0;
    for (int i = 0; i < list->parts && names < 2; i++) {
        read_item(&item, list->part[i]);
        names += item.name.p && !(names && same_text(first, item.name));
        first = item.name.p ? item.name : first;
    }
    return names;
}

// Does each part of x have a partner in y, and the other way round: the one in its place, or any that is
// free? In a set one may serve twice. If only one list names its parts, the names may go: of one name in any
// order, else in the order of the list, 2, 3 for x=2, y=3. If both do, the names must agree.
static int compare_parts(const Item* x, const Item* y, int strict, Comparison* c) {
    int used[MAX_ITEMS + 1] = {0}, alike = x->open == y->open && x->close == y->close;
    int set = x->open == '{' && y->open == '{';
    int list = (x->open == ',' || x->open == '{') && (y->open == ',' || y->open == '{');
    int ordered = !list && x->open != N_CUP && x->open != N_CAP;
    if (!alike && (!list || set)) return 0;  // but the list of solutions 1, 2 is the set {2, 1}
    if (!x->parts || !y->parts || (x->parts != y->parts && !set)) return 0;
    if (list) {
        int names_x = count_names(x), names_y = count_names(y);
        strict |= names_x && names_y;
        ordered = (names_x == 2 && !names_y) || (names_y == 2 && !names_x);
    }
    for (int i = 0; i < x->parts; i++) {
        int found = 0;
        for (int j = 0; j < y->parts && (set || !found); j++) {
            if ((ordered && i != j) || (used[j] && !set)) continue;
            if (compare_item(x->part[i], y->part[j], strict, c)) found = used[j] = 1;
        }
        if (!found) return 0;
    }
    for (int j = 0; j < y->parts; j++)
        if (!used[j]) return 0;
    return 1;
}

static int compare_item(Slice a, Slice b, int strict, Comparison* c) {
    Item x, y;
    c->budget -= (int)(a.end - a.p) + (int)(b.end - b.p) + 1;
    if (c->budget < 0 || a.p >= a.end || b.p >= b.end) return 0;
    if (same_text(a, b)) return 1;
    read_item(&x, a);
    read_item(&y, b);
    int names = (x.name.p != NULL) + (y.name.p != NULL), same_name = names == 2 && same_text(x.name, y.name);
    if (x.relation == N_EQ && y.relation == N_EQ && !same_name)
        return same_at_all_points(peel(a), peel(b), EQUATION, 1, c);
    if ((names == 1 && strict) || (names == 2 && (x.relation != y.relation || !same_name))) return 0;
    if (!x.open && !y.open) return compare_expressions(*x.part, *y.part, c);
    return compare_parts(&x, &y, strict || names == 1, c);
}

// Are two final answers the same mathematics? a and b are what extract_* finds or a data set calls the
// answer: LaTeX, Unicode or plain typing. 1 = the same. 0 = different, not understood, empty, or longer than
// MAX_ANSWER bytes; but the same text is equal to itself at any length. Symmetric, because the two are put in
// a fixed order first. The time grows linearly with the length. (What it can't see: the head of chapter 5.)
int answers_equal(const char* a, const char* b) {
    Comparison c;
    int order = strcmp(a, b);
    if (order == 0) return *a != 0;
    if (strlen(a) > MAX_ANSWER || strlen(b) > MAX_ANSWER) return 0;
    c.count = c.unmatched = c.names = c.imaginary = 0;
    Slice x = read_answer(&c, order < 0 ? a : b), y = read_answer(&c, order < 0 ? b : a);
    if (c.unmatched) return x.p < x.end && same_text(x, y);
    c.budget = 64 * c.count;
    find_names(&c);
    return compare_item(x, y, 0, &c);
}

/* ---- A.5 Arithmetic, for the calculator of chapter 6 ---- */

// The value of a text, exactly num / den unless den is 0. 1 = it has one. 0 = it is no arithmetic: a power, a
// missing operator, 2(3), a division by zero, parentheses too deep.
static int evaluate_arithmetic(double* value, int64_t* num, int64_t* den, const char* text) {
    Comparison c;
    Value v;
    c.count = c.unmatched = 0;
    Slice s = read_answer(&c, text);
    for (Token* k = c.token + 1; k < s.end; k++) {
        if (k->kind == N_TEXT) k->kind = N_NUMBER;  // of many digits
        if (k->kind == '^' || ((k->kind == N_NUMBER || k->kind == '(') && is_operand(k[-1].kind))) return 0;
    }
    int evaluated = evaluate(&v, s, SUM, 0, 0) == 1;
    *value = creal(v.z);
    *num = v.num;
    *den = v.den;
    return evaluated;
}

// ==========================================================================================================
// The command line
// ==========================================================================================================
// Options, tables, and the commands that call the chapters. rl_train() is the loop around rl_step().

// ---- text for people

// One line of a column: up to `width` characters from *s, broken at a space or newline; *s moves behind it.
// With `fill` the rest of the width is filled with spaces.
static void print_cell(const char** s, int width, int fill) {
    const char *p = *s, *space = *s;
    int used = 0, before_space = 0;
    for (; *p && *p != '\n' && used < width; used++) {
        if (*p == ' ') space = p;
        if (*p == ' ') before_space = used;
        p += max_int(1, utf8_length(p, p + strlen(p)));
    }
    int cut = *p && *p != '\n' && *p != ' ' && before_space;       // in the middle of a word
    if (cut) p = space;
    printf("%.*s%*s", (int)(p - *s), *s, fill ? width - (cut ? before_space : used) : 0, "");
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

// One file, whole or not at all: another name, and at the end the right one. The other name is this process's
// own, so that two programs that write the same file do not write into each other's.
static void write_file(const char* folder, const char* name, const Text* text) {
    char path[PATH_SIZE], own[PATH_SIZE + 32];
    join_path(path, folder, name);
    snprintf(own, sizeof own, "%s.%ld.tmp", path, (long)getpid());
    FILE* file = fopen(own, "wb");
    if (file) fwrite(text->data, 1, text->length, file);
    int reason = close_written(file);
    if (!reason && rename(own, path) != 0) reason = errno;
    if (reason) {
        remove(own);
        fail(1, "cannot write %s: %s; what was there before is untouched", path, strerror(reason));
    }
    flush_folder(folder);
}

// Where --out FILE leads: fills in the folder, which is made if it is not there, and returns the name in it.
// Called before the work, so that neither a bad name nor a file that must not be lost costs minutes.
static const char* out_file(char folder[PATH_SIZE], const char* path, int overwrite) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    struct stat info;
    int there = stat(path, &info) == 0;
    if (!*name || (there && !S_ISREG(info.st_mode)))   // root would lose /dev/null for good
        fail(2, "--out '%s' is not the name of a file, or it is a device or a pipe, which a file would "
                "replace; --out out/table.csv would be a name", path);
    if (there && !overwrite) fail(2, "%s is there already; --overwrite replaces it", path);
    if (strlen(name) > 240 || strlen(path) + 8 > PATH_SIZE) // while it is being written it has a longer name
        fail(2, "--out: the file name %s is too long", name);
    snprintf(folder, PATH_SIZE, "%.*s", slash ? max_int(1, (int)(slash - path)) : 1, slash ? path : ".");
    make_folder(folder);
    return name;
}

// ---- the options of all commands
//
// One table: what there is, where in RlOptions its value stands, and which commands take it. What means
// something else to another command stands in a row of its own. The defaults are rl_defaults(), and what a
// command changes in them. The names are nanochat's where it has them; else the help gives TRL's
// (epsilon, beta) or verl's.

enum {
    FOR_TRAIN = 1, FOR_RUN = 2, FOR_EVAL = 4, FOR_SAMPLE = 8, FOR_TRACE = 16, FOR_PAIRS = 32,
    FOR_REWARD_MODEL = 64, FOR_DPO = 128, FOR_BEST_OF_N = 256, FOR_COMPARE = 512, FOR_EXPERIMENT = 1024,
    FOR_GRADE = 2048, FOR_PLOT = 4096, FOR_THERMOSTAT = 8192, FOR_CARTPOLE = 16384,
    FOR_RL = FOR_TRAIN | FOR_RUN, FOR_METHOD = FOR_RL | FOR_TRACE,
    FOR_PREFS = FOR_REWARD_MODEL | FOR_DPO,             // trained on preferences: pairs of answers
    FOR_PAIRING = FOR_PAIRS | FOR_PREFS,                // make pairs
    FOR_UPDATES = FOR_RL | FOR_PREFS,                   // a run of updates, that is saved and can be resumed
    FOR_SCORES = FOR_EVAL | FOR_COMPARE | FOR_EXPERIMENT,
    FOR_SAMPLING = FOR_GRADE - 1,                       // all that use a model
    FOR_REWARD = (FOR_SAMPLING | FOR_GRADE) & ~FOR_EXPERIMENT,
    FOR_RATE = FOR_METHOD | FOR_PREFS | FOR_BEST_OF_N | FOR_CARTPOLE,
    FOR_SEED = FOR_SAMPLING | FOR_THERMOSTAT | FOR_CARTPOLE
};

typedef struct {
    const char* name;
    OptionType type;
    size_t at;               // place of the value in RlOptions
    double low, high;        // allowed range of numbers
    int saved;               // 1 = in trainer_state.json, see Option
    int commands;            // who takes it
    const char* help;
} RlOption;

#define INT(field)   OPTION_INT, offsetof(RlOptions, field)
#define FLOAT(field) OPTION_FLOAT, offsetof(RlOptions, field)
#define TEXT(field)  OPTION_TEXT, offsetof(RlOptions, field)
#define FLAG(field)  OPTION_FLAG, offsetof(RlOptions, field)
#define SEED(field)  OPTION_SEED, offsetof(RlOptions, field)

static const RlOption rl_options[] = {
    {"model-tag", TEXT(model), 0, 0, 1, FOR_SAMPLING & ~FOR_COMPARE, "the model: a directory, or out/TAG"},
    {"reward", TEXT(reward), 0, 0, 1, FOR_REWARD, "gsm8k, boxed, partial, format; train: +model:DIR"},
    {"num-samples", INT(num_samples), 1, 4096, 1, FOR_SAMPLING, "rollouts per question (nanochat 16)"},
    {"max-new-tokens", INT(sample.max_new_tokens), 1, 65536, 1, FOR_SAMPLING, "longest one (nanochat 256)"},
    {"temperature", FLOAT(sample.temperature), 0, 100, 1, FOR_SAMPLING, "0 = likeliest token (nanochat 1)"},
    {"top-k", INT(sample.top_k), 0, 1e6, 1, FOR_SAMPLING, "from the k likeliest; 0 = all (nanochat 50)"},
    {"top-p", FLOAT(sample.top_p), 0, 1, 1, FOR_SAMPLING, "from the likeliest up to this probability"},
    {"seed", SEED(seed), 0, 0, 1, FOR_SEED, "of everything random"},
    {"threads", INT(threads), 0, 1024, 0, FOR_SAMPLING, "threads; 0 = all cores"},
    // files
    {"data", TEXT(data), 0, 0, 1, FOR_RL | FOR_SCORES | FOR_PAIRS | FOR_BEST_OF_N, "questions"},
    {"eval-data", TEXT(eval_data), 0, 0, 1, FOR_RL, "questions to evaluate on"},
    {"data", TEXT(pairs), 0, 0, 1, FOR_PREFS, "pairs to train on; none = make them"},
    {"eval-data", TEXT(eval_pairs), 0, 0, 1, FOR_PREFS, "held-out pairs"},
    {"questions", TEXT(data), 0, 0, 1, FOR_PREFS, "questions to sample answers to"},
    {"eval-questions", TEXT(eval_data), 0, 0, 1, FOR_REWARD_MODEL, "questions of held-out pairs"},
    {"allow-overlap", FLAG(allow_overlap), 0, 0, 1, FOR_UPDATES, "evaluate also on questions trained on"},
    {"out", TEXT(out), 0, 0, 0, FOR_UPDATES | FOR_BEST_OF_N, "directory for checkpoint and tables"},
    {"out", TEXT(out), 0, 0, 0, FOR_PAIRS | FOR_EVAL, "file to write; eval: its table as CSV"},
    {"resume", TEXT(resume), 0, 0, 0, FOR_TRAIN | FOR_PREFS, "directory of a run to go on with"},
    {"overwrite", FLAG(overwrite), 0, 0, 0, FOR_UPDATES | FOR_BEST_OF_N, "replace the run that is in --out"},
    {"overwrite", FLAG(overwrite), 0, 0, 0, FOR_PAIRS | FOR_EVAL, "replace the file that --out names"},
    {"data-hash", SEED(data_hash), 0, 0, 1, FOR_UPDATES, NULL},
    // a run of updates
    {"examples-per-step", INT(examples_per_step), 1, 4096, 1, FOR_RL, "questions per update (nanochat 16)"},
    {"batch-size", INT(batch_size), 1, 1e6, 1, FOR_PREFS | FOR_BEST_OF_N, "pairs or answers per update"},
    {"num-epochs", INT(num_epochs), 1, 1e6, 1, FOR_UPDATES, "passes over the data (nanochat 1)"},
    {"num-steps", INT(num_steps), 0, 1e9, 1, FOR_UPDATES, "updates; 0 = as num-epochs says"},
    {"steps", INT(num_steps), 1, 1e9, 0, FOR_BEST_OF_N, "updates on the kept answers"},
    {"lr", FLOAT(lr), 0, 1e6, 1, FOR_RATE, "learning rate (RL: times init-lr-frac)"},
    {"init-lr-frac", FLOAT(init_lr_frac), 0, 1, 1, FOR_RL, "RL begins at this part of it (nanochat 0.05)"},
    {"warmup-steps", INT(warmup_steps), 0, 1e9, 1, FOR_PREFS, "updates in which the learning rate rises"},
    {"weight-decay", FLOAT(adam.weight_decay), 0, 10, 1, FOR_UPDATES, "AdamW, of matrices (nanochat 0)"},
    {"grad-clip", FLOAT(grad_clip), 0, 1e9, 1, FOR_UPDATES, "longest gradient; 0 = any (nanochat: none)"},
    {"eval-every", INT(eval_every), 0, 1e9, 1, FOR_RL, "updates between evaluations (nanochat 60)"},
    {"eval-examples", INT(eval_examples), 1, 1e9, 1, FOR_RL | FOR_SCORES, "so many questions (nanochat 400)"},
    {"eval-samples", INT(eval_samples), 1, 4096, 1, FOR_RL, "rollouts of each of them"},
    {"save-every", INT(save_every), 0, 1e9, 1, FOR_UPDATES, "updates between saves; 0 = at the end"},
    {"log-every", INT(log_every), 1, 1e9, 1, FOR_UPDATES | FOR_BEST_OF_N, "updates per printed line"},
    // looking at models and answers
    {"answer", TEXT(answer), 0, 0, 0, FOR_SAMPLE | FOR_TRACE, "the right answer: brings rewards, an update"},
    {"compare", TEXT(compare), 0, 0, 0, FOR_EVAL | FOR_TRACE, "another model; eval: the one before training"},
    {"rollout", INT(rollout), -1, 4095, 0, FOR_TRACE, "which one token by token; -1 = the first rewarded"},
    {"explain", INT(explain), 0, INT_MAX, 0, FOR_GRADE, "show how record N is graded; 0 = grade all"},
    {"explain", FLAG(explain), 0, 0, 0, FOR_SAMPLE, "each token's probability, and its alternatives"},
    {"completion", TEXT(completion), 0, 0, 0, FOR_EXPERIMENT, "a reply for 1 and 2; else one is sampled"},
    {"smooth", INT(smooth), 1, 1e6, 0, FOR_PLOT, "each value is the mean of so many"},
    {"together", FLAG(together), 0, 0, 0, FOR_PLOT, "several columns on one scale"},
    // the decisions of a method: --algo sets all of them, and each can be set by itself
    {"algo", TEXT(algo), 0, 0, 1, FOR_METHOD, "a row of `./rl algos`: sets all that follows"},
    {"advantage", TEXT(advantage), 0, 0, 1, FOR_METHOD, "none, centered, rloo, grpo, gae (adv_estimator)"},
    {"ratio", TEXT(ratio), 0, 0, 1, FOR_METHOD, "pi/pi_old: none, token, sequence or cispo"},
    {"norm", TEXT(norm), 0, 0, 1, FOR_METHOD, "token, sequence, sum, constant (verl: loss_agg_mode)"},
    {"clip-low", FLOAT(clip_low), 0, 1, 1, FOR_METHOD, "the ratio counts from 1 - this (TRL: epsilon)"},
    {"clip-high", FLOAT(clip_high), 0, 1e6, 1, FOR_METHOD, "to 1 + this (TRL: epsilon_high)"},
    {"beta", FLOAT(beta), 0, 1e6, 1, FOR_METHOD, "price of a nat of KL (verl: kl_loss_coef)"},
    {"beta", FLOAT(beta), 1e-6, 1e3, 1, FOR_DPO, "price of a nat of drift (TRL: beta)"},
    {"kl-estimator", TEXT(kl_estimator), 0, 0, 1, FOR_METHOD, "k1, k2 or k3, chapter 8 (verl: kl_loss_type)"},
    {"kl-in", TEXT(kl_in), 0, 0, 1, FOR_METHOD, "the loss, or the reward (verl: use_kl_in_reward)"},
    {"kl-per", TEXT(kl_per), 0, 0, 1, FOR_METHOD, "in the reward: sum per sequence, or mean per token"},
    {"reference", TEXT(reference), 0, 0, 1, FOR_METHOD | FOR_DPO | FOR_COMPARE, "model that KL measures to"},
    {"epochs-per-batch", INT(epochs_per_batch), 1, 1000, 1, FOR_METHOD, "passes over it (verl: ppo_epochs)"},
    {"minibatch", INT(minibatch), 0, 4096, 1, FOR_METHOD, "questions a step, 0 = all (ppo_mini_batch_size)"},
    {"resample", INT(resample), 0, 1000, 1, FOR_METHOD, "dynamic sampling (DAPO), at most so many rounds"},
    {"overlong", INT(overlong), 0, 65536, 1, FOR_METHOD, "soft limit in tokens (verl: overlong_buffer.len)"},
    {"gamma", FLOAT(gamma), 0, 1, 1, FOR_METHOD, "gae: discount per token"},
    {"lambda", FLOAT(lambda), 0, 1, 1, FOR_METHOD, "gae: 1 = no bias, 0 = no variance"},
    {"value-lr", FLOAT(value_lr), 0, 10, 1, FOR_METHOD, "gae: learning rate of the value model"},
    {"value-clip", FLOAT(value_clip), 0, 1e6, 1, FOR_METHOD, "gae: 0 = any change (verl: cliprange_value)"},
    // pairs, and training on chosen answers
    {"annotator", TEXT(annotator), 0, 0, 1, FOR_PAIRING, "verifier, demos, mixed, longer, shorter, wordy"},
    {"pairs-per-question", INT(per_question), 1, 1e6, 1, FOR_PAIRING, "at most so many pairs of each"},
    {"pairs", INT(most_pairs), 0, 1e9, 1, FOR_PAIRING, "so many of all pairs; 0 = all"},
    {"noise", FLOAT(noise), 0, 1, 1, FOR_PAIRING, "share of judgements that are turned around"},
    {"loss", TEXT(loss), 0, 0, 1, FOR_REWARD_MODEL, "bradley-terry or outcome"},
    {"keep", TEXT(keep), 0, 0, 0, FOR_BEST_OF_N, "prompt, overall, or random (the control)"},
    {"from", TEXT(from), 0, 0, 0, FOR_BEST_OF_N, "model to train, if not the one that answers"},
};

enum { RL_OPTIONS = 64 };                // room for those of one command, and the end

// The options of one command, with their values in o. Returns how many; behind them t must hold zeros.
static int take_options(Option* t, RlOptions* o, int command) {
    int n = 0;
    for (size_t i = 0; i < sizeof rl_options / sizeof *rl_options; i++) {
        const RlOption* r = &rl_options[i];
        if (!(r->commands & command)) continue;
        t[n++] = (Option){r->name, r->type, (char*)o + r->at, r->low, r->high, r->help, r->saved, 0};
    }
    return n;
}

// gsm8k, boxed, model:DIR, or the sum gsm8k+model:DIR. The model's directory goes to scorer, or "": it is not
// loaded yet, so that a word that is no reward is refused before anything is read.
static Reward read_reward(const char* text, char scorer[PATH_SIZE]) {
    const char* model = strstr(text, "model:");
    char kind[PATH_SIZE];
    snprintf(scorer, PATH_SIZE, "%s", model ? model + 6 : "");
    snprintf(kind, PATH_SIZE, "%s", text);
    if (model && !*scorer) fail(2, "--reward %s names no directory behind 'model:'", text);
    if (model == text) return (Reward){.kind = &reward_kinds[0]};
    if (model && model[-1] == '+') kind[model - text - 1] = 0;
    return (Reward){.kind = find_reward(kind), .paid = 1};
}

static void check_sampling(const RlOptions* o) {
    char scorer[PATH_SIZE];
    read_reward(o->reward, scorer);
    if (!(o->sample.top_p > 0.0f)) fail(2, "--top-p must be above 0");
}

// Begins the command NAME, whose help is "NAME - what it does": its options with their values in o, --help
// (which ends the program), the command line, the threads. What is no option goes to words, at most `room`;
// returns how many. options (RL_OPTIONS zeros, or NULL): for those who ask later which of them were given.
static int begin_command(RlOptions* o, Option* options, const char** words, int room, int command, int argc,
                         char** argv, const char* help, const char* arguments) {
    Option own[RL_OPTIONS] = {{0}};
    char usage[80];
    if (!options) options = own;
    take_options(options, o, command);
    int name = (int)strcspn(help, " ");
    snprintf(usage, sizeof usage, "./rl %.*s%s [--option=value ...]", name, help, arguments);
    if (asked_for_help(argc, argv, help, usage, options)) exit(end_of_output(0));
    int count = parse_options(options, argc, argv, words, room);
    check_sampling(o);
    set_threads(o->threads);
    return count;
}

// out/TAG, or the tag itself when it is a directory; returns whether it is there
static int find_tagged(char path[PATH_SIZE], const char* tag) {
    join_path(path, tag, "config.json");
    if (file_exists(path) || strchr(tag, '/')) snprintf(path, PATH_SIZE, "%s", tag);
    else join_path(path, "out", tag);
    return file_exists(path);
}

static void tagged_path(char path[PATH_SIZE], const char* tag) {
    if (find_tagged(path, tag)) return;
    fail(2, "there is no model %s; ./train_gpt makes out/sft, `make run` out/run/sft and out/run/rl", path);
}

static Model load_tagged_model(const char* tag) {
    char path[PATH_SIZE];
    tagged_path(path, tag);
    return load_fitting_model(path);
}

// A run may not be written over a model that it reads: that model would be gone, and a run that goes on after
// a stop would read what it has trained as its reference or reward model.
static void refuse_overwriting(const char* out, const char* const* tags, int count) {
    char path[PATH_SIZE];
    for (int i = 0; i < count; i++)
        if (tags[i] && *tags[i] && find_tagged(path, tags[i]) && same_folder(out, path))
            fail(2, "the run would be written over the model in %s, which it reads; try another --out", path);
}

// Whether --out is there or can be made, as far as can be told beforehand: a bad name costs no minutes.
static void check_folder_name(const char* out) {
    if (!*out) fail(2, "a directory was expected, but its name is empty");
    if (access(out, W_OK | X_OK) != 0 && errno != ENOENT)
        fail(1, "cannot make the directory %s or write into it: %s", out, strerror(errno));
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
    Model policy, value, reference, reward_model;
    Optimizer optimizer, value_optimizer;
    Learner learner;
} Setup;

static void setup_load(Setup* s, const RlOptions* o, long step) {
    const char* resume = o->resume;
    char scorer[PATH_SIZE];
    Reward reward = read_reward(o->reward, scorer);
    refuse_overwriting(o->out, (const char* const[]){o->model, o->reference, scorer}, 3);
    *s = (Setup){.policy = resume ? load_fitting_model(resume) : load_tagged_model(o->model)};
    const Config* c = &s->policy.config;
    s->optimizer = resume ? load_optimizer(resume, c, step) : optimizer_new(c);
    if (*scorer) {
        s->reward_model = load_reward_model(scorer, c->context);
        s->reward_model.frozen = 1;
        reward.model = &s->reward_model;
    }
    Learner* l = &s->learner;
    *l = learner_new(&s->policy, &s->optimizer, reward, o);
    if (l->advantage == ADVANTAGE_GAE) {
        l->value = &s->value;
        l->value_optimizer = &s->value_optimizer;
        s->value =
            resume ? load_value_model(&s->value_optimizer, resume, c, step) : scalar_model_on(&s->policy);
        if (!resume) s->value_optimizer = optimizer_new(&s->value.config);
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
    if (s->learner.reward.model) model_free(&s->reward_model);
    optimizer_free(&s->optimizer), model_free(&s->policy);
}

static int is_given(const Option* options, const char* name) {
    for (const Option* t = options; t->name; t++) if (!strcmp(t->name, name)) return t->given;
    return 0;
}

// Options that were given and would change nothing are refused, with the reason. names: one or more, with
// spaces between them.
static void refuse_idle(int idle, const Option* options, const char* names, const char* why) {
    for (const char* p = names; idle && *p; p += *p == ' ') {
        char name[32];
        size_t n = strcspn(p, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        if (is_given(options, name)) fail(2, "--%s means nothing here: %s", name, why);
        p += n;
    }
}

// Decisions that contradict each other, or that the rollouts cannot bear.
static void check_method(const RlOptions* o, const Option* options) {
    Learner l = learner_new(NULL, NULL, (Reward){0}, o);       // the words as numbers; it complains of others
    int by_group = l.advantage != ADVANTAGE_NONE && l.advantage != ADVANTAGE_GAE;
    int several = o->epochs_per_batch > 1 || (o->minibatch && o->minibatch < o->examples_per_step);
    if (by_group && o->num_samples < 2)
        fail(2, "--advantage %s compares the answers to a question with each other, and --num-samples 1 "
                "leaves nothing to compare with; take 2 or more, or --advantage none", o->advantage);
    if (is_given(options, "minibatch") && o->minibatch > o->examples_per_step)  // a row's own is cut to size
        fail(2, "--minibatch %d is more than an update's %d questions", o->minibatch, o->examples_per_step);
    if (o->overlong > o->sample.max_new_tokens)
        fail(2, "--overlong %d punishes from the first token on: an answer has %d at most (--max-new-tokens)",
             o->overlong, o->sample.max_new_tokens);
    if (o->resample && !by_group)
        fail(2, "--resample redraws questions whose answers have equal rewards, but with --advantage %s "
                "these have something to teach as well; take --resample 0", o->advantage);
    if (l.ratio == RATIO_NONE && several)
        fail(2, "with --ratio none each batch can be used for one gradient step only: after it the rollouts "
                "are those of an older policy, and nothing corrects for that; take --ratio token with "
                "--clip-low 0.2 --clip-high 0.2, or --epochs-per-batch 1 --minibatch 0");
    if (l.ratio != RATIO_NONE && several && o->clip_low == 0.0f && o->clip_high == 0.0f)
        fail(2, "--clip-low 0 --clip-high 0 lets no ratio but 1 count, and after the first gradient step of "
                "a batch there is hardly one; take --clip-low 0.2 --clip-high 0.2");
    if (l.ratio == RATIO_SEQUENCE && l.advantage == ADVANTAGE_GAE)
        fail(2, "--ratio sequence has one ratio for a whole answer, --advantage gae an advantage for each "
                "token; take --ratio token, or another advantage");
    if (o->beta > 0.0f && !l.kl_in_reward && l.estimator == 1)
        fail(2, "--kl-estimator k1 in the loss pulls nowhere: its gradient is that of log pi, 0 on average "
                "(chapter 8); take k2 or k3, or --kl-in reward");
    refuse_idle(l.ratio == RATIO_NONE, options, "clip-low clip-high",
                "with --ratio none there is no ratio to clip; take --ratio token");
    refuse_idle(o->beta == 0.0f, options, "kl-estimator kl-in kl-per", "there is no KL term with --beta 0");
    refuse_idle(!l.kl_in_reward, options, "kl-per",
                "in the loss the KL is averaged as --norm says; it is for --kl-in reward");
    refuse_idle(l.advantage != ADVANTAGE_GAE, options, "gamma lambda value-lr value-clip",
                "only --advantage gae has steps to discount and a value model; an answer that is rewarded as "
                "a whole has one advantage (chapter 4)");
    refuse_idle(!several, options, "value-clip",
                "it holds a value near what it was, and that begins with a second gradient step on a batch");
}

// The whole run, from update `step` on. Saves into o->out; after Ctrl-C it returns early, saved as well.
// Returns 0, or 130 after Ctrl-C.
static int rl_train(Learner* l, const Option* options, long step) {
    const RlOptions* o = l->o;
    int context = l->policy->config.context, room = o->sample.max_new_tokens;
    const RewardKind* kind = l->reward.kind;
    Questions q = load_questions(o->data, context, room, kind), test = {0};
    if (o->eval_every) test = load_questions(o->eval_data, context, room, kind);
    Group* group = groups_new(o->examples_per_step, o->num_samples, q.longest + room + 1);
    int* chosen = allocate((size_t)o->examples_per_step, sizeof(int));
    long steps = o->num_steps ? o->num_steps
                              : (long)o->num_epochs * max_int(1, q.count / o->examples_per_step);
    Run run = run_begin(o->out, o->overwrite, rl_columns, step, steps, o->log_every, o->save_every);
    printf("reinforcement learning (%s): %ld updates of %d questions x %d rollouts\n  reward: %s\n",
           o->algo, steps, o->examples_per_step, o->num_samples, o->reward);
    while (run_goes_on(&run)) {
        deal_examples(chosen, o->examples_per_step, run.step, q.count, o->seed);
        Metrics s = rl_step(l, group, &q, chosen, run.step, lr_schedule(run.step, steps, 0, 0.0));
        if (o->eval_every && (run.step + 1) % o->eval_every == 0) {
            Evaluation e = evaluate_model(l->policy, &test, o->eval_examples, o->eval_samples, o->sample,
                                          kind, NULL, o->seed + 2);
            s.held_out = e.pass[0];
            evaluation_free(&e);
        }
        run_record(&run, l->policy, l->value, &s);
        if (run_saves(&run))
            save_run(o->out, "rl", options, run.step, l->policy, l->optimizer, l->value, l->value_optimizer);
    }
    groups_free(group, o->examples_per_step);
    questions_free(&q), questions_free(&test);
    free(chosen);
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
    set_method(&o, asked_algo(argc, argv));
    begin_command(&o, options, NULL, 0, FOR_TRAIN, argc, argv, "train - reinforcement learning from a reward",
                  " [--algo NAME]");
    if (o.resume && is_given(options, "algo"))
        fail(2, "a run keeps its method when it is resumed; leave --algo out");
    long step = choose_run(&o.out, rl_defaults().out, o.resume, o.overwrite, "rl", options);
    check_method(&o, options);
    Setup setup;
    setup_load(&setup, &o, step);
    check_data(&o.data_hash, o.data);
    if (o.eval_every) check_apart(o.data, o.eval_data, o.allow_overlap);
    int status = rl_train(&setup.learner, options, step);
    if (!status) printf("saved %s\n", o.out);
    setup_free(&setup);
    return status;
}

// ---- ./rl best-of-n

// Samples, scores and keeps; writes the kept answers to OUT/kept.jsonl.
static void write_kept(Model* m, const RlOptions* o, int rule) {
    char path[PATH_SIZE];
    Model reward_model;
    Reward reward = read_reward(o->reward, path);
    Questions q = load_questions(o->data, m->config.context, o->sample.max_new_tokens, reward.kind);
    int K = o->num_samples, n = q.count * K, questions = 0;
    double mean = 0.0, kept_mean = 0.0;
    if (*path) {
        reward_model = load_reward_model(path, m->config.context);
        reward.model = &reward_model;
    }
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
    if (reward.model) model_free(&reward_model);
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
    Option sft_options[TRAIN_OPTIONS] = {{0}};
    char model[PATH_SIZE], kept[PATH_SIZE];
    o.out = "out/best";
    o.num_steps = 150;
    o.batch_size = t.batch_size;
    o.lr = 5e-4f;
    o.log_every = t.log_every;
    begin_command(&o, NULL, NULL, 0, FOR_BEST_OF_N, argc, argv,
                  "best-of-n - samples answers, keeps the best, trains on them", "");
    int rule = choose(o.keep, keep_names, "keep");
    Model m = load_tagged_model(o.model);
    tagged_path(model, o.from ? o.from : o.model);
    refuse_overwriting(o.out, (const char* const[]){model}, 1);
    choose_run(&o.out, NULL, NULL, o.overwrite, "sft", sft_options);   // before minutes of sampling
    write_kept(&m, &o, rule);
    model_free(&m);
    join_path(kept, o.out, "kept.jsonl");
    t.overwrite = o.overwrite;
    t.data = kept;
    t.model = model;
    t.out = o.out;
    t.steps = o.num_steps;
    t.batch_size = o.batch_size;
    t.lr = o.lr;
    t.log_every = o.log_every;
    t.seed = o.seed;
    t.threads = o.threads;
    train_options(sft_options, &t);
    return train(&t, sft_options);
}

// The prompt of a question, if it fits with one token of an answer.
static Tokens question_prompt(const char* question, const Model* m) {
    Tokens prompt = {0};
    render_prompt(&prompt, question);
    int frame = prompt.length - (int)strlen(question), room = max_int(0, m->config.context - frame - 1);
    if (prompt.length >= m->config.context)
        fail(2, "the question has %d tokens; beside the %d of its frame and one of an answer, %d fit into "
                "the model's context of %d", prompt.length - frame, frame, room, m->config.context);
    return prompt;
}

// ---- ./rl run: the whole story

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
            text_printf(&text[j], "\nreward %g",
                        (double)grade_answer(raw[j].data, q->list[i].truth, kind).reward);
        }
        print_side_by_side(text[0].data, text[1].data);
        for (int j = 0; j < 2; j++) text_free(&raw[j]), text_free(&text[j]);
    }
}

static void write_result(const char* folder, const RlOptions* o, const Evaluation* before,
                         const Evaluation* after, double sft_seconds, double rl_seconds,
                         double total_seconds) {
    Text out = {0};
    text_printf(&out, "{\n  \"seed\": %llu,\n  \"threads\": %d,\n  \"reward\": \"%s\",\n",
                (unsigned long long)o->seed, thread_count(), o->reward);
    text_printf(&out, "  \"sft_seconds\": %.2f,\n  \"rl_seconds\": %.2f,\n  \"total_seconds\": %.2f,\n",
                sft_seconds, rl_seconds, total_seconds);
    text_printf(&out, "  \"peak_rss_mb\": %.1f,\n", peak_memory_mb());
    evaluation_to_json(&out, "before", before);
    text_printf(&out, ",\n");
    evaluation_to_json(&out, "after", after);
    text_printf(&out, "\n}\n");
    write_file(folder, "result.json", &out);
    text_free(&out);
}

// Everything before and after RL: `questions` of the test, 16 answers to each, and the first answer to three
// of them.
static Evaluation look_at(Rollout** three, Model* m, const Questions* test, const RlOptions* o,
                          const RewardKind* kind) {
    *three = answer_questions(m, test, 0, min_int(3, test->count), 1, o->sample, o->seed + 3);
    return evaluate_model(m, test, 256, 16, o->sample, kind, NULL, o->seed + 2);
}

static int command_run(int argc, char** argv) {
    RlOptions o = rl_defaults();
    TrainOptions t = train_defaults();
    Option options[RL_OPTIONS] = {{0}}, sft_options[TRAIN_OPTIONS] = {{0}};
    char sft_folder[PATH_SIZE], rl_folder[PATH_SIZE];
    o.model = NULL;
    o.out = "out/run";
    set_method(&o, asked_algo(argc, argv));
    begin_command(&o, options, NULL, 0, FOR_RUN, argc, argv,
                  "run - supervised training, then reinforcement learning, then before and after", "");
    train_options(sft_options, &t);
    check_method(&o, options);
    check_apart(o.data, o.eval_data, o.allow_overlap);
    if (!o.model) check_apart(t.data, o.eval_data, o.allow_overlap);
    double started = seconds_now(), sft_seconds = 0.0;
    const char* folder = o.out;
    join_path(sft_folder, folder, "sft");
    join_path(rl_folder, folder, "rl");
    t.seed = o.seed;
    t.threads = o.threads;
    t.out = sft_folder;
    t.overwrite = o.overwrite;
    o.out = rl_folder;
    choose_run(&o.out, NULL, NULL, o.overwrite, "rl", options);        // before minutes of training
    check_data(&o.data_hash, o.data);
    if (!o.model) {
        int status = train(&t, sft_options);
        if (status) {
            printf("then, for the rest of the story: ./rl run --model-tag %s --out %s\n", sft_folder, folder);
            return status;
        }
        sft_seconds = seconds_now() - started;
        o.model = sft_folder;
        printf("\n");
    }
    Setup setup;
    Rollout* three[2];
    setup_load(&setup, &o, 0);
    Model* m = &setup.policy;
    const RewardKind* kind = setup.learner.reward.kind;
    Questions test = load_questions(o.eval_data, m->config.context, o.sample.max_new_tokens, kind);
    Evaluation before = look_at(&three[0], m, &test, &o, kind);
    printf(
        "before RL, on %d held-out questions: pass@1 %.3f,\ncalculator used %.3f, rewarded format %.3f\n\n",
        before.questions, before.pass[0], before.tool_rate, before.format_rate);
    double rl_started = seconds_now();
    int status = rl_train(&setup.learner, options, 0);
    double rl_seconds = seconds_now() - rl_started;
    if (status) return status;
    Evaluation after = look_at(&three[1], m, &test, &o, kind);
    print_before_after(&before, &after);
    print_three(&test, three[0], three[1], min_int(3, test.count), kind);
    double total = seconds_now() - started;
    write_result(folder, &o, &before, &after, sft_seconds, rl_seconds, total);
    printf("\n%.0f s in all: %.0f s supervised, %.0f s RL; %.0f MB; %d threads, seed %llu\n", total,
           sft_seconds, rl_seconds, peak_memory_mb(), thread_count(), (unsigned long long)o.seed);
    printf("wrote %s/result.json, %s\n", folder, rl_folder);
    rollouts_free(three[0]), rollouts_free(three[1]), evaluation_free(&before), evaluation_free(&after);
    questions_free(&test), setup_free(&setup);
    return 0;
}

// ---- ./rl trace: one update under the microscope, on a model and a question of the reader's choice

// The tokens that learn the most: what reaches the logit of a sampled token is dlogp x (1 - p), chapter 3.
static void print_decisions(const Rollout* r, const float* logp, const float* dlogp) {
    double sum = 0.0, *share = allocate((size_t)r->T, sizeof(double));
    char text[24];
    for (int t = r->prompt; t < r->prompt + r->length; t++) {
        share[t] = r->mask[t] ? fabs((double)dlogp[t - 1]) * (1.0 - exp((double)logp[t - 1])) : 0.0;
        sum += share[t];
    }
    if (sum > 0.0)
        printf("\nWhat reaches the logit of a sampled token is dlogp x (1 - p). Most of it goes to\n\n");
    for (int i = 0; i < 3 && sum > 0.0; i++) {
        int most = r->prompt;
        for (int t = r->prompt; t < r->prompt + r->length; t++)
            if (share[t] > share[most]) most = t;
        printf("   %5.1f%%  t = %d, %s\n", 100.0 * share[most] / sum, most - r->prompt,
               token_text(text, r->ids[most]));
        share[most] = 0.0;
    }
    free(share);
}

// What stands in g after an update, or, without a right answer, after sampling alone (s is NULL).
// other: the log-probs under the second model or after the update, or NULL.
static void print_trace(const Group* g, const Metrics* s, const float* other, const RlOptions* o) {
    static const char* const before_after[] = {"before", "after", "change"};
    static const char* const two_models[] = {"A", "B", "B - A"};
    const char* const* names = o->compare ? two_models : before_after;
    int K = o->num_samples, chosen = max_int(0, o->rollout);
    while (o->rollout < 0 && s && chosen < K - 1 && g->reward[chosen] <= 0.5f) chosen++;
    size_t at = (size_t)chosen * (size_t)(g->rollouts->T - 1);
    const float* dlogp = s && g->trained ? g->dlogp + at : NULL;
    print_wrapped("Question", o->question);
    if (s) printf("Answer    %s, reward %s, method %s\n", o->answer, o->reward, o->algo);
    printf("Model     %s%s\n", o->compare ? "A = " : "", o->model);
    if (o->compare) printf("          B = %s\n", o->compare);
    printf("\n%d rollouts%s, seed %llu:\n\n", K, o->compare ? ", sampled by A" : "",
           (unsigned long long)o->seed);
    print_rollouts(g, K, s != NULL, other, names, chosen);
    if (s)
        printf("\nOne update: loss %.6f, gradient norm %.4f, learning rate %.2e.\n", g->loss, s->grad_norm,
               s->lr);
    if (s && !g->trained)
        printf("All advantages are 0: nothing is learned from this group. More --num-samples may\nhelp.\n");
    printf("\nRollout %d, token by token; m is the mask%s.\n\n", chosen,
           s ? ", dlogp = 1000 d loss / d log pi" : "");
    print_tokens(&g->rollouts[chosen], g->logp_old + at, other ? other + at : NULL, names, dlogp);
    if (dlogp) print_decisions(&g->rollouts[chosen], g->logp_old + at, dlogp);
    printf("\nTake away: %s\n",
           s ? "within an answer every sampled token has the same advantage, every\n"
               "forced one dlogp 0. A token that was certain has nothing to learn; the open\n"
               "decisions do."
             : "log pi(y|x) is a sum over sampled tokens, without the forced ones.\n"
               "With --answer N come reward, advantage and one update.");
}

static int command_trace(int argc, char** argv) {
    RlOptions o = rl_defaults();
    Option options[RL_OPTIONS] = {{0}};
    int first = 0;
    o.model = "out/run/rl";
    o.out = o.question = "";
    o.num_samples = 8;
    o.examples_per_step = 1;
    set_method(&o, asked_algo(argc, argv));
    begin_command(&o, options, &o.question, 1, FOR_TRACE, argc, argv,
                  "trace - one update on one question: rollouts, rewards, loss, token by token",
                  " \"QUESTION\"");
    if (!*o.question)
        fail(2, "a question is missing: ./rl trace \"Tom has 3 pens and buys 4 more. How many pens does "
                "Tom have now?\" --answer 7");
    if (o.rollout >= o.num_samples)
        fail(2, "--rollout %d: there are %d rollouts, 0 to %d; --num-samples asks for more", o.rollout,
             o.num_samples, o.num_samples - 1);
    o.minibatch = min_int(o.minibatch, 1);
    o.resample = 0;                       // there is one question
    check_method(&o, options);
    Setup setup;
    setup_load(&setup, &o, 0);
    Model *m = &setup.policy, second = o.compare ? load_tagged_model(o.compare) : (Model){0};
    Question question = {.prompt = question_prompt(o.question, m), .question = o.question,
                         .truth = copy_text(o.answer ? o.answer : "")};
    Questions q = {.list = &question, .count = 1, .longest = question.prompt.length};
    int K = o.num_samples, T = q.longest + min_int(o.sample.max_new_tokens, m->config.context) + 1;
    if (o.compare && second.config.context < min_int(m->config.context, T - 1))
        fail(2, "the context of %s, %d tokens, is too short for the question and %d new tokens", o.compare,
             second.config.context, o.sample.max_new_tokens);
    Group* g = groups_new(1, K, T);
    float* other = allocate((size_t)K * (size_t)(T - 1), sizeof(float));
    Metrics s = {0};
    if (o.answer) s = rl_step(&setup.learner, g, &q, &first, 0, 1.0);
    else {
        sample_rollouts(g->rollouts, worker(m), &question.prompt, 1, K, o.sample, tool_calculator, o.seed + 1,
                        0);
        shift_mask(g->mask, g->rollouts->mask, K, T);
    }
    if (o.compare || o.answer) score_rollouts(other, o.compare ? &second : m, g->rollouts, K);
    print_trace(g, o.answer ? &s : NULL, o.compare || o.answer ? other : NULL, &o);
    groups_free(g, 1), free(other), tokens_free(&question.prompt), free(question.truth), setup_free(&setup);
    if (o.compare) model_free(&second);
    return 0;
}

// ---- lessons and warm-ups

static const struct { const char *name, *title; void (*run)(int more); } lessons[] = {
    {"1", "The language of reinforcement learning", lesson_1},
    {"2", "Two warm-ups: thermostat and CartPole", lesson_2},
    {"3", "The language model as policy", lesson_3},
    {"4", "Why it is a bandit", lesson_4},
    {"5", "Rewards: the verifier", lesson_5},
    {"6", "Rollouts and the tool", lesson_6},
    {"7", "Advantages: better than average", lesson_7},
    {"8", "The objective: reward minus beta KL", lesson_8},
    {"9", "Losses", lesson_9},
    {"10", "The training loop", lesson_10},
    {"11", "Evaluation", lesson_11},
    {"12", "Recipes", lesson_12},
    {"chain", "D2's four answers, from logits to the gradient of the logits", lesson_chain},
};
enum { ENTRIES = sizeof lessons / sizeof *lessons, LESSONS = ENTRIES - 1 };   // `all` leaves the chain out

static int command_lesson(int argc, char** argv) {
    int more = argc == 2 && !strcmp(argv[1], "--more"), found = 0;
    if (argc == 0 || !strcmp(argv[0], "--help") || !strcmp(argv[0], "-h")) {
        for (int i = 0; i < ENTRIES; i++) printf("  %5s  %s\n", lessons[i].name, lessons[i].title);
        printf("\n./rl lesson N prints one, ./rl lesson all prints all. --more adds what a first\n"
               "reading can do without: ./rl lesson 7 --more\n");
        return 0;
    }
    if (argc > 1 + more) fail(2, "one lesson at a time: ./rl lesson 7, lesson 7 --more, or lesson all");
    int all = !strcmp(argv[0], "all");
    for (int i = 0; i < (all ? LESSONS : ENTRIES); i++) {
        if (!all && strcmp(argv[0], lessons[i].name)) continue;
        if (found++) printf("\n\n");
        lessons[i].run(more);
    }
    if (!found) fail(2, "there is no lesson '%s'; there are 1 to %d, chain and all", argv[0], LESSONS);
    return 0;
}

// ---- the table of commands, and main

typedef struct { const char *name, *what; int (*run)(int argc, char** argv); } Command;

static const Command commands[] = {
    {"run", "the whole story: supervised training, RL, before and after", command_run},
    {"train", "reinforcement learning from a checkpoint", command_train},
    {"best-of-n", "samples many answers, keeps the best, trains on them", command_best_of_n},
    {"trace", "one question: its rollouts, and one of them token by token", command_trace},
    {"lesson", "the worked numbers of a chapter: lesson 7, lesson all", command_lesson},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

// `more` (count) are the commands of docs/tools.c, with which make builds ./rl.
static int rl_main(int argc, char** argv, const Command* more, int count) {
    open_standard_streams();
    int help = argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help");
    const Command* chosen = NULL;
    if (help)
        printf("rl - reinforcement learning for language models\n\nusage: ./rl COMMAND [--help] "
               "[--option=value ...]\n\n");
    for (int i = 0; i < COMMANDS + count; i++) {
        const Command* c = i < COMMANDS ? &commands[i] : &more[i - COMMANDS];
        if (help && c->what) printf("  %-13s %s\n", c->name, c->what);
        if (!help && !strcmp(argv[1], c->name)) chosen = c;       // a tool goes before what has its name here
    }
    if (chosen) return end_of_output(chosen->run(argc - 2, argv + 2));
    if (!help) fail(2, "there is no command '%s'; ./rl --help lists them", argv[1]);
    return end_of_output(argc < 2 ? 2 : 0);
}

#ifndef RL_NO_MAIN
int main(int argc, char** argv) { return rl_main(argc, argv, NULL, 0); }
#endif
