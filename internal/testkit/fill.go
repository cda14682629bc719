package testkit

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// Fill sets every field of a value to a value of its own, made from n, which it counts up.
// Interfaces stay nil.
func Fill(v reflect.Value, n *int) {
	*n++
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(0, int64(*n)).UTC()))
		return
	case reflect.TypeFor[json.RawMessage]():
		v.Set(reflect.ValueOf(json.RawMessage(fmt.Sprintf(`{"n":%d.50,"<":""}`, *n))))
		return
	case reflect.TypeFor[map[string]json.RawMessage]():
		v.Set(reflect.ValueOf(map[string]json.RawMessage{"more": json.RawMessage("1.50")}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text <%d>", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint32:
		v.SetUint(uint64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		Fill(v.Elem(), n)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte{0, 0xff})
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		Fill(v.Index(0), n)
		Fill(v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"k": fmt.Sprint(*n)}))
	case reflect.Struct:
		for i := range v.NumField() {
			Fill(v.Field(i), n)
		}
	case reflect.Interface:
	default:
		panic(fmt.Sprintf("no value for a %s", v.Type()))
	}
}
