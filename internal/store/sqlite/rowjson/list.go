package rowjson

// converted is a list of the same length; nil of nil.
func converted[From, To any](list []From, convert func(From) To) []To {
	if list == nil {
		return nil
	}
	is := make([]To, len(list))
	for i, v := range list {
		is[i] = convert(v)
	}
	return is
}
