// Package flow finds min-cost flows exactly: which arcs of a directed graph carry how many units so that the supply of
// every node gets away, every demand is met, every arc stays within its bounds, and the sum of cost times units is
// least. All numbers are int64. What does not fit is refused with ErrOverflow, never wrapped, and nothing is random.
//
// What one gets wrong at first: supply that does not fit is an error, not a partial answer. Set Solver.Partial to send
// as much as possible, at least cost.
//
//	p := flow.NewProblem(3)
//	p.SetSupply(0, 4)
//	p.SetSupply(2, -4)
//	cheap := p.AddArc(0, 2, 0, 3, 1)
//	p.AddArc(0, 1, 0, 4, 2)
//	p.AddArc(1, 2, 0, flow.Inf, 2)
//	s := flow.NewSolver(p)
//	sol, err := s.Solve()         // sol.Cost is 7
//	p.SetCost(cheap, 5)
//	sol, err = s.Solve()          // from the last basis
//	err = sol.Verify(p)           // proves it again, without the solver
//
// # Model
//
// With x(a) the units on arc a, b(v) the supply of node v, l, u and c the bounds and cost of an arc:
//
//	minimise    sum c(a) x(a)
//	subject to  out of v - into v = b(v) for each node v,  l(a) <= x(a) <= u(a) for each arc a
//
// The potentials y(v) of a Solution prove it least: with reduced cost r(a) = c(a) + y(from) - y(to), r(a) > 0 only
// where x(a) = l(a), and r(a) < 0 only where x(a) = u(a). An infeasible problem comes with a cut, an unbounded one with
// a cycle.
//
// # Method
//
// The primal network simplex method on a strongly feasible spanning tree with parent, thread, predecessor, subtree size
// and last-successor indices, artificial arcs of a large cost to a root, and block search for the entering arc. Ideas
// are from the literature: Ahuja, Magnanti and Orlin, Network Flows, 1993, chapter 11 (the method; strong feasibility,
// by Cunningham, excludes cycling); Barr, Glover and Klingman, Enhancements of spanning tree labelling procedures for
// network optimization, 1979 (the indices); Grigoriadis, An efficient implementation of the network simplex method,
// 1986 (block search, composite cost of artificial arcs); Kovács, Minimum-cost flow algorithms: an experimental
// evaluation, 2015 (what is worth it).
//
// Ours: arcs are stored the way they can still take flow, so that the search reads 16 bytes per arc and no state;
// residuals are stored in the tree, so that the ratio test reads no arcs; the smaller side of the tree moves its
// potentials; tree-shaped parts of the graph, up to nine tenths of the nodes, are left out (load.go); and any edit at
// all is repaired in one pass over the tree, leaves first, which cuts what no longer fits and hangs it at the root.
//
// After edits of costs alone (recost.go) a solve into the last solution (write.go) writes only what they changed: it is
// O(nodes of the network + what the edits and pivots touch) then, besides looking for arcs that can enter.
//
// A solve is O(nodes + arcs) besides its pivots. Their number has no polynomial bound, though in practice it is a small
// multiple of the nodes; PivotLimit makes it finite for hostile input. Memory is about 200 bytes per node and 100 per
// arc.
package flow
