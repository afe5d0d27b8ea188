package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
)

// The floor of the host's own calls: the same writes with the same contents, so that the API server has the same to do.
func full(ctx context.Context, cfg *rest.Config, workers int) error {
	f := newFloor(cfg)
	return f.each(ctx, workers, func(db *unstructured.Unstructured) error {
		e := engineOf(db)
		if e.env != nil {
			secret := credentials(db)
			if _, err := f.typed.CoreV1().Secrets(db.GetNamespace()).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
				return err
			}
			e.env = []corev1.EnvVar{{Name: e.env[0].Name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: secret.Name}, Key: "password"}}}}
		}
		meta := map[string]any{"labels": hostLabels(db, e), "ownerReferences": owner(db),
			"annotations": map[string]string{"keelson.dev/hash": "0123456789abcdef01234567"}}
		pod, automount := e.podSpec(), false
		pod.AutomountServiceAccountToken = &automount
		if err := f.createByApply(ctx, db, "Pod", "pods", meta, pod); err != nil {
			return err
		}
		service := corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"keelson.dev/instance": string(db.GetUID())},
			Ports: []corev1.ServicePort{{Port: e.port, TargetPort: intstr.FromInt32(e.port)}}}
		if err := f.createByApply(ctx, db, "Service", "services", meta, service); err != nil {
			return err
		}
		if err := patch(ctx, f.databases(), db, status(db, e), "status"); err != nil {
			return err
		}
		_, err := f.typed.EventsV1().Events(db.GetNamespace()).Create(ctx, event(db), metav1.CreateOptions{})
		return err
	})
}

func hostLabels(db *unstructured.Unstructured, e engine) map[string]string {
	return map[string]string{
		"app": "db", "keelson.dev/instance": string(db.GetUID()), "keelson.dev/plugin": e.name,
		"app.kubernetes.io/name": e.name, "app.kubernetes.io/instance": db.GetName(),
		"app.kubernetes.io/managed-by": "keelson", "app.kubernetes.io/part-of": "database",
	}
}

func credentials(db *unstructured.Unstructured) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: db.GetName() + "-credentials", Namespace: db.GetNamespace(), OwnerReferences: owner(db),
			Labels: hostLabels(db, engine{name: "mysql"}), Annotations: map[string]string{"keelson.dev/revision-key": rand.Text()}},
		Data: map[string][]byte{"password": []byte(rand.Text()[:24])},
	}
}

func status(db *unstructured.Unstructured, e engine) map[string]any {
	now := time.Now().UTC().Format(time.RFC3339)
	condition := func(kind, status, reason, message string) map[string]any {
		return map[string]any{"type": kind, "status": status, "reason": reason, "message": message,
			"lastTransitionTime": now, "observedGeneration": db.GetGeneration()}
	}
	child := func(kind, name string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": kind, "name": name}
	}
	children := []any{child("Pod", db.GetName())}
	if e.env != nil {
		children = append(children, child("Secret", db.GetName()+"-credentials"))
	}
	return map[string]any{
		"apiVersion": db.GetAPIVersion(), "kind": db.GetKind(),
		"metadata": map[string]any{"name": db.GetName(), "namespace": db.GetNamespace(), "uid": db.GetUID()},
		"status": map[string]any{
			"observedGeneration": db.GetGeneration(),
			"conditions": []any{
				condition("Ready", "False", "Pending", "Pod "+db.GetName()+": it has not been started yet"),
				condition("Progressing", "True", "WaitingForChildren", ""),
				condition("Degraded", "False", "AsExpected", ""),
			},
			"children": append(children, child("Service", db.GetName())),
			"message":  message(db),
			"endpoint": fmt.Sprintf("%s.%s.svc:%d", db.GetName(), db.GetNamespace(), e.port),
			"nodePort": 30000,
		},
	}
}

func event(db *unstructured.Unstructured) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: db.GetName() + ".0123456789abcdef", Namespace: db.GetNamespace()},
		EventTime:  metav1.NowMicro(), ReportingController: "keelson.dev/keelson", ReportingInstance: "floor",
		Action: "Apply", Reason: "Created", Type: corev1.EventTypeNormal, Note: message(db),
		Regarding: corev1.ObjectReference{APIVersion: db.GetAPIVersion(), Kind: db.GetKind(), Namespace: db.GetNamespace(), Name: db.GetName(), UID: db.GetUID()},
	}
}
