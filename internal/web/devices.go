package web

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gofrs/flock"

	"github.com/duet-rpc/duet-rpc/internal/durable"
)

// A Device is a browser that was paired. The browser has two secrets: a cookie, and a key that its page keeps. A cookie
// alone goes to every port of a machine, also to those of other users; the key goes to this page's own address alone.
type Device struct {
	ID     string    `json:"id"`
	Name   string    `json:"name"`
	Paired time.Time `json:"paired_at"`
	Seen   time.Time `json:"seen_at"` // to the hour
	Push   *Push     `json:"push,omitempty"`

	Cookie hash `json:"cookie"`
	Key    hash `json:"key"`
}

// A hash is the SHA-256 of a secret of 256 random bits, in hexadecimal digits.
type hash string

func hashOf(secret string) hash {
	sum := sha256.Sum256([]byte(secret))
	return hash(hex.EncodeToString(sum[:]))
}

func (h hash) matches(secret string) bool {
	return subtle.ConstantTimeCompare([]byte(h), []byte(hashOf(secret))) == 1
}

// newSecret returns a secret for a cookie or a key.
func newSecret() string {
	var bytes [32]byte
	rand.Read(bytes[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(bytes[:])
}

// A code pairs one device. It stands on the terminal, and in the picture there.
type code struct {
	Hash    hash      `json:"hash"`
	Expires time.Time `json:"expires_at"`
}

const (
	// codeLetters has none that look alike.
	codeLetters = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
	codeLength  = 8
	codeLasts   = 10 * time.Minute
	mostCodes   = 8

	mostDevices = 64
	longestName = 60 // of a device, in bytes
)

// Errors of pairing.
var (
	ErrWrongCode = errors.New("this code is wrong, was used, or is older than 10 minutes: `duet-rpc web pair` shows a new one")
	ErrTooMany   = fmt.Errorf("%d devices are paired: `duet-rpc web devices remove NAME` makes room", mostDevices)
	// ErrNoDevice is the error for a name or an id that no device has.
	ErrNoDevice = errors.New("no device has this name: `duet-rpc web devices` lists them")
)

// Devices are the paired devices of a user, in a file that `duet-rpc web` and its commands share. All methods may be called from any
// goroutine and any process.
type Devices struct{ dir string }

// OpenDevices returns the devices of a directory, which it makes. Others cannot read it.
func OpenDevices(dir string) (*Devices, error) {
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s has to be a directory that you alone may use: mode 700", dir)
	}
	return &Devices{dir: dir}, nil
}

// devicesFile is what the file has.
type devicesFile struct {
	Devices []Device `json:"devices"`
	Codes   []code   `json:"codes,omitempty"`
	Push    *pushKey `json:"push,omitempty"`
}

func (d *Devices) path() string { return filepath.Join(d.dir, "devices.json") }

func (d *Devices) read() (f devicesFile, err error) {
	text, err := os.ReadFile(d.path())
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		if err = json.Unmarshal(text, &f); err != nil {
			err = fmt.Errorf("%s cannot be read: %w; remove it and pair your devices again", d.path(), err)
		}
	}
	return f, err
}

// update changes the file, and returns when the change is on the disk.
func (d *Devices) update(change func(*devicesFile) error) error {
	lock := flock.New(filepath.Join(d.dir, "lock"), flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return err
	}
	defer lock.Close()
	f, err := d.read()
	if err != nil {
		return err
	}
	if err := change(&f); err != nil {
		return err
	}
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return durable.Replace(d.path(), append(text, '\n'), 0o600)
}

// NewCode returns a code that pairs one device within ten minutes, such as ABCD-2345.
func (d *Devices) NewCode(now time.Time) (string, error) {
	letters := make([]byte, 0, codeLength)
	for len(letters) < codeLength {
		var random [1]byte
		rand.Read(random[:])
		if int(random[0]) < 256/len(codeLetters)*len(codeLetters) { // each letter is as likely
			letters = append(letters, codeLetters[int(random[0])%len(codeLetters)])
		}
	}
	err := d.update(func(f *devicesFile) error {
		f.Codes = slices.DeleteFunc(f.Codes, func(c code) bool { return !now.Before(c.Expires) })
		f.Codes = append(f.Codes, code{hashOf(string(letters)), now.Add(codeLasts)})
		f.Codes = f.Codes[max(0, len(f.Codes)-mostCodes):]
		return nil
	})
	return string(letters[:codeLength/2]) + "-" + string(letters[codeLength/2:]), err
}

// Pair makes a device of a browser that knows a code, which no other browser can use after it. It returns the device with the secrets
// for the browser. The error is [ErrWrongCode], [ErrTooMany], or that of the disk.
func (d *Devices) Pair(given, name string, now time.Time) (device Device, cookie, key string, err error) {
	given = strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(given))
	cookie, key = newSecret(), newSecret()
	err = d.update(func(f *devicesFile) error {
		i := slices.IndexFunc(f.Codes, func(c code) bool { return now.Before(c.Expires) && c.Hash.matches(given) })
		if i < 0 {
			return ErrWrongCode
		}
		if len(f.Devices) >= mostDevices {
			return ErrTooMany
		}
		f.Codes = slices.Delete(f.Codes, i, i+1)
		device = Device{
			ID: newSecret()[:12], Name: f.freeName(cleanName(name)), Paired: now.UTC(), Seen: now.UTC(), Cookie: hashOf(cookie), Key: hashOf(key),
		}
		f.Devices = append(f.Devices, device)
		return nil
	})
	return device, cookie, key, err
}

// cleanName returns a name for people, of a line that is not too long.
func cleanName(name string) string {
	name = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(name, ""), func(r rune) bool { return r < ' ' || r == 0x7f || r == ' ' || r == 0x2028 || r == 0x2029 }), " ")
	for len(name) > longestName {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	if name == "" {
		return "device"
	}
	return name
}

// freeName returns a name that no device has.
func (f *devicesFile) freeName(name string) string {
	taken := func(name string) bool {
		return slices.ContainsFunc(f.Devices, func(d Device) bool { return d.Name == name || d.ID == name })
	}
	free := name
	for n := 2; taken(free); n++ {
		free = fmt.Sprintf("%s %d", name, n)
	}
	return free
}

// WithCookie returns the device that has a cookie.
func (d *Devices) WithCookie(cookie string) (Device, error) {
	return d.find(func(one Device) bool { return one.Cookie.matches(cookie) })
}

// WithID returns the device that has an id.
func (d *Devices) WithID(id string) (Device, error) {
	return d.find(func(one Device) bool { return one.ID == id })
}

func (d *Devices) find(is func(Device) bool) (Device, error) {
	all, err := d.List()
	if err != nil {
		return Device{}, err
	}
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], nil
	}
	return Device{}, ErrNoDevice
}

// List returns all devices, in the order of their pairing.
func (d *Devices) List() ([]Device, error) {
	f, err := d.read()
	return f.Devices, err
}

// Remove removes the device that has a name or an id. Its open connections end within a second.
func (d *Devices) Remove(name string) (removed Device, err error) {
	err = d.update(func(f *devicesFile) error {
		i := slices.IndexFunc(f.Devices, func(one Device) bool { return one.ID == name || one.Name == name })
		if i < 0 {
			return ErrNoDevice
		}
		removed = f.Devices[i]
		f.Devices = slices.Delete(f.Devices, i, i+1)
		return nil
	})
	return removed, err
}

// change changes the device that has an id.
func (d *Devices) change(id string, change func(f *devicesFile, device *Device)) error {
	return d.update(func(f *devicesFile) error {
		for i := range f.Devices {
			if f.Devices[i].ID == id {
				change(f, &f.Devices[i])
				return nil
			}
		}
		return ErrNoDevice
	})
}

// rename gives a device another name, and returns it as it is now.
func (d *Devices) rename(id, name string) (now string, err error) {
	err = d.change(id, func(f *devicesFile, device *Device) {
		device.Name = ""
		device.Name = f.freeName(cleanName(name))
		now = device.Name
	})
	return now, err
}

// saw notes that a device was seen. It writes once an hour at most.
func (d *Devices) saw(device Device, now time.Time) error {
	if now.Sub(device.Seen) < time.Hour {
		return nil
	}
	return d.change(device.ID, func(_ *devicesFile, device *Device) { device.Seen = now.UTC().Truncate(time.Hour) })
}
