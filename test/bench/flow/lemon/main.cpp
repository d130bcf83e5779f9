// Times LEMON's NetworkSimplex on DIMACS min-cost flow files, for comparison with the Go solver beside it.
//
//   compare [-runs N] FILE...      FILE may be gzipped; one line per file: cost, then the runs in milliseconds
//
// "build" is copying graph, bounds, costs and supplies into the solver, "run" is its run() alone. Costs and capacities
// are 64 bits wide, as in the Go solver; -int makes them 32 bits, LEMON's own default.
#include <lemon/network_simplex.h>
#include <lemon/smart_graph.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

struct Arc {
  int from, to;
  long long lower, upper, cost;
};

struct Instance {
  int nodes = 0;
  std::vector<long long> supply;
  std::vector<Arc> arcs;
};

static bool read(const char* path, Instance& in) {
  std::string command = std::string("gzip -dcf -- '") + path + "'";
  FILE* f = popen(command.c_str(), "r");
  if (!f) return false;
  char line[512];
  while (fgets(line, sizeof line, f)) {
    int a, b;
    long long x, y, z;
    if (sscanf(line, "p min %d %d", &a, &b) == 2) {
      in.nodes = a;
      in.supply.assign(a, 0);
      in.arcs.reserve(b);
    } else if (sscanf(line, "n %d %lld", &a, &x) == 2) {
      in.supply.at(a - 1) = x;
    } else if (sscanf(line, "a %d %d %lld %lld %lld", &a, &b, &x, &y, &z) == 5) {
      in.arcs.push_back({a - 1, b - 1, x, y, z});
    }
  }
  return pclose(f) == 0 && in.nodes > 0;
}

using Clock = std::chrono::steady_clock;

static double ms(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

template <typename V>
static bool solve(const Instance& in, int runs, const char* path) {
  using Graph = lemon::SmartDigraph;
  Graph g;
  g.reserveNode(in.nodes);
  g.reserveArc(in.arcs.size());
  for (int i = 0; i < in.nodes; i++) g.addNode();
  Graph::ArcMap<V> lower(g), upper(g), cost(g);
  Graph::NodeMap<V> supply(g);
  for (int i = 0; i < in.nodes; i++) supply[g.nodeFromId(i)] = in.supply[i];
  for (const Arc& a : in.arcs) {
    Graph::Arc e = g.addArc(g.nodeFromId(a.from), g.nodeFromId(a.to));
    lower[e] = a.lower;
    upper[e] = a.upper;
    cost[e] = a.cost;
  }
  long long total = 0;
  std::string builds, times;
  for (int i = 0; i < runs; i++) {
    auto t0 = Clock::now();
    lemon::NetworkSimplex<Graph, V, V> simplex(g);
    simplex.lowerMap(lower).upperMap(upper).costMap(cost).supplyMap(supply);
    auto t1 = Clock::now();
    if (simplex.run() != lemon::NetworkSimplex<Graph, V, V>::OPTIMAL) {
      fprintf(stderr, "%s: no optimum\n", path);
      return false;
    }
    auto t2 = Clock::now();
    total = simplex.template totalCost<long long>();
    builds += " " + std::to_string(ms(t0, t1));
    times += " " + std::to_string(ms(t1, t2));
  }
  printf("cost %lld build%s run%s\n", total, builds.c_str(), times.c_str());
  return true;
}

int main(int argc, char** argv) {
  int runs = 7;
  bool narrow = false, ok = true;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "-runs") && i + 1 < argc) {
      runs = atoi(argv[++i]);
    } else if (!strcmp(argv[i], "-int")) {
      narrow = true;
    } else {
      Instance in;
      if (!read(argv[i], in)) {
        fprintf(stderr, "%s: cannot be read\n", argv[i]);
        return 2;
      }
      ok = (narrow ? solve<int>(in, runs, argv[i]) : solve<long long>(in, runs, argv[i])) && ok;
    }
  }
  return ok ? 0 : 1;
}
