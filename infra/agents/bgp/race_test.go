//go:build race

package main

func init() { detectsRaces = true }
