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

// oneUser says that this process is in a user namespace with no other user than its own. Then containers have that
// user, and volumes and the files of images belong to it.
var oneUser = sync.OnceValue(func() bool {
	content, err := os.ReadFile("/proc/self/uid_map")
	words := strings.Fields(string(content))
	return err == nil && len(words) == 3 && words[2] == "1"
})

// account is a user as /etc/passwd has it.
type account struct {
	name     string
	uid, gid int
	home     string
}

// accounts are the users and groups that an image has names for. Those of this machine are not asked: the result must
// not depend on it.
type accounts struct {
	users []account
	// members are the names of the users that a group has besides those whose own it is.
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

// eachRecord reads a file of an image, which may be missing, and passes over lines that are too short.
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

// byID returns a user without a name, who belongs to the group of root, where the image does not know it.
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

// groupsOf are those that have a user of this name as a member.
func (a accounts) groupsOf(name string) (groups []int) {
	for gid, members := range a.members {
		if name != "" && slices.Contains(members, name) {
			groups = append(groups, gid)
		}
	}
	slices.Sort(groups)
	return groups
}
