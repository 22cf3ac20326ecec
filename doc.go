// Package state holds what the agents, tools and routers of one network share.
package state
