//go:build kubernetes

package kubernetes

import (
	"net/http"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func (f *fake) createLease(w http.ResponseWriter, r *http.Request) {
	l := decode(f.t, r.Body).(*coordinationv1.Lease)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leases[l.Name] != nil {
		fail(w, &metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonAlreadyExists})
		return
	}
	f.stamp(&l.ObjectMeta)
	f.leases[l.Name] = l
	answerJSON(w, l)
}

func (f *fake) listLeases(w http.ResponseWriter, r *http.Request) {
	selector, _ := labels.Parse(r.URL.Query().Get("labelSelector"))
	f.mu.Lock()
	defer f.mu.Unlock()
	var list coordinationv1.LeaseList
	for _, l := range f.leases {
		if selector.Matches(labels.Set(l.Labels)) {
			list.Items = append(list.Items, *l)
		}
	}
	answerJSON(w, list)
}

func (f *fake) updateLease(w http.ResponseWriter, r *http.Request) {
	l := decode(f.t, r.Body).(*coordinationv1.Lease)
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.leases[l.Name]
	switch {
	case was == nil:
		notFound(w, l.Name)
		return
	case l.ResourceVersion != was.ResourceVersion:
		fail(w, &metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict})
		return
	}
	f.stamp(&l.ObjectMeta)
	f.leases[l.Name] = l
	answerJSON(w, l)
}

func (f *fake) deleteLease(w http.ResponseWriter, r *http.Request) {
	o := decode(f.t, r.Body).(*metav1.DeleteOptions)
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.leases[r.PathValue("name")]
	switch {
	case l == nil:
		notFound(w, r.PathValue("name"))
	case o.Preconditions != nil && o.Preconditions.ResourceVersion != nil &&
		*o.Preconditions.ResourceVersion != l.ResourceVersion:
		fail(w, &metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict})
	default:
		delete(f.leases, l.Name)
		answerJSON(w, metav1.Status{Status: metav1.StatusSuccess})
	}
}
