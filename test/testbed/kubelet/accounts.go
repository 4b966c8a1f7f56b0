package kubelet

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// oneUser reports whether this process is in a user namespace that has only one user. All containers then run as that
// user, and volumes and the files of images belong to it.
var oneUser = sync.OnceValue(func() bool {
	content, err := os.ReadFile("/proc/self/uid_map")
	words := strings.Fields(string(content))
	return err == nil && len(words) == 3 && words[2] == "1"
})

// account is a user in /etc/passwd.
type account struct {
	name     string
	uid, gid int
	home     string
}

// accounts has the users and groups in the files of an image. The files of this machine are not used, so that the
// result does not depend on it.
type accounts struct {
	users []account
	// members has, for each group, the names of the users for whom it is a supplementary group.
	members map[int][]string
}

func readAccounts(root string) (accounts, error) {
	a := accounts{members: map[int][]string{}}
	if root == "" {
		return a, nil
	}
	err := eachRecord(root, "etc/passwd", 7, func(fields []string) {
		uid, wrongUID := strconv.Atoi(fields[2])
		gid, wrongGID := strconv.Atoi(fields[3])
		if wrongUID == nil && wrongGID == nil {
			a.users = append(a.users, account{name: fields[0], uid: uid, gid: gid, home: fields[5]})
		}
	})
	if err != nil {
		return a, err
	}
	return a, eachRecord(root, "etc/group", 4, func(fields []string) {
		if gid, err := strconv.Atoi(fields[2]); err == nil {
			a.members[gid] = strings.Split(fields[3], ",")
		}
	})
}

// eachRecord reads a file of an image. It ignores a missing file, and lines that have too few fields.
func eachRecord(root, name string, length int, use func(fields []string)) error {
	file, err := os.OpenInRoot(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadString('\n')
		if fields := strings.Split(strings.TrimSpace(line), ":"); len(fields) >= length {
			use(fields)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// byID returns the user with an ID. An unknown user has no name and the group 0.
func (a accounts) byID(uid int) account {
	i := slices.IndexFunc(a.users, func(u account) bool { return u.uid == uid })
	if i >= 0 {
		return a.users[i]
	}
	if uid == 0 {
		return account{name: "root", home: "/root"}
	}
	return account{uid: uid, home: "/"}
}

func (a accounts) byName(name string) (account, bool) {
	i := slices.IndexFunc(a.users, func(u account) bool { return u.name == name })
	if i < 0 {
		return account{}, false
	}
	return a.users[i], true
}

// groupsOf returns the groups of which a user is a member.
func (a accounts) groupsOf(name string) (groups []int) {
	for gid, members := range a.members {
		if name != "" && slices.Contains(members, name) {
			groups = append(groups, gid)
		}
	}
	slices.Sort(groups)
	return groups
}
