package pgserver

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
)

// account is a user of this machine under whom a server runs.
type account struct {
	name     string
	uid, gid int
}

// serverAccount returns nil for an ordinary user, who runs the server himself. PostgreSQL refuses root, so for root it
// is the user postgres or, without one, nobody.
func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if a, err := lookupAccount(name); err == nil && a.uid != 0 {
			return a, nil
		}
	}
	return nil, errors.New("PostgreSQL refuses to run as root, and this machine has no user postgres or nobody: " +
		"run as an ordinary user")
}

// lookupAccount reads a user's numbers.
func lookupAccount(name string) (*account, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, uidErr := strconv.Atoi(u.Uid)
	gid, gidErr := strconv.Atoi(u.Gid)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return nil, fmt.Errorf("user %s has no numeric ids: %w", name, err)
	}
	return &account{name: name, uid: uid, gid: gid}, nil
}
