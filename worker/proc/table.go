package proc

import "bytes"

// holds reports whether a block of NUL-ended strings has exactly this one.
func holds(block []byte, s string) bool {
	line := make([]byte, 0, len(s)+2)
	line = append(append(append(line, 0), s...), 0)
	if bytes.HasPrefix(block, line[1:]) || bytes.Contains(block, line) {
		return true
	}
	// The last string may lack its NUL.
	return bytes.HasSuffix(block, line[:len(line)-1]) || bytes.Equal(block, line[1:len(line)-1])
}
