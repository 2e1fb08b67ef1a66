// Command peers holds txidem against other Go libraries that say they keep a message from being processed twice: what a
// message costs with each, and how many effects a message has that is delivered more than once. See README.md.
package main
