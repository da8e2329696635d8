// Package egress performs HTTP exchanges of programs from the daemon itself, for network "direct", under the operator's
// policy: a list of what may be reached, and no address of a private or other special range whatever a name resolves to,
// but for those that the operator excepts. A public address is like any other, also where it is the host's own.
//
// The daemon composes it and gives its Fetch to the pool. The package must never use what the host has: no proxy of the
// environment, no cookies, no credentials, no connection that another program used before. Who asks is not known here:
// the policy is the same for all.
//
// Requests come from a worker and are taken for hostile; what servers answer as well.
package egress
