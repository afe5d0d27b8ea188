package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The least that can be called serving a Database: one watch, and for each object seen for the first time some blind
// writes. No cache of children, no repair, no retry.
type floor struct {
	dynamic dynamic.Interface
	typed   kubernetes.Interface
}

func newFloor(cfg *rest.Config) floor {
	return floor{dynamic.NewForConfigOrDie(cfg), kubernetes.NewForConfigOrDie(cfg)}
}

func post(ctx context.Context, cfg *rest.Config, workers int) error {
	f := newFloor(cfg)
	return f.each(ctx, workers, func(db *unstructured.Unstructured) error {
		e := engineOf(db)
		meta := metav1.ObjectMeta{Name: db.GetName(), Namespace: db.GetNamespace(), Labels: labels(db), OwnerReferences: owner(db)}
		pod := &corev1.Pod{ObjectMeta: meta, Spec: e.podSpec()}
		if _, err := f.typed.CoreV1().Pods(db.GetNamespace()).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return err
		}
		service := &corev1.Service{ObjectMeta: meta, Spec: e.serviceSpec(db)}
		if _, err := f.typed.CoreV1().Services(db.GetNamespace()).Create(ctx, service, metav1.CreateOptions{}); err != nil {
			return err
		}
		return f.mergeStatus(ctx, db)
	})
}

func apply(ctx context.Context, cfg *rest.Config, workers int) error {
	f := newFloor(cfg)
	return f.each(ctx, workers, func(db *unstructured.Unstructured) error {
		e := engineOf(db)
		meta := map[string]any{"labels": labels(db), "ownerReferences": owner(db)}
		if err := f.createByApply(ctx, db, "Pod", "pods", meta, e.podSpec()); err != nil {
			return err
		}
		if err := f.createByApply(ctx, db, "Service", "services", meta, e.serviceSpec(db)); err != nil {
			return err
		}
		return f.mergeStatus(ctx, db)
	})
}

func (f floor) each(ctx context.Context, workers int, serve func(*unstructured.Unstructured) error) error {
	watch, err := f.databases().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	todo := make(chan *unstructured.Unstructured, 100_000)
	for range workers {
		go func() {
			for db := range todo {
				if err := serve(db); err != nil {
					log.Print(err)
				}
			}
		}()
	}
	ready()
	for event := range watch.ResultChan() {
		if db, ok := event.Object.(*unstructured.Unstructured); ok && event.Type == "ADDED" {
			todo <- db
		}
	}
	return nil
}

func (f floor) databases() dynamic.NamespaceableResourceInterface {
	return f.dynamic.Resource(schema.GroupVersionResource{Group: "zalando.org", Version: "v1", Resource: "databases"})
}

// An apply with resourceVersion "1" makes the object if there is none, and is a 409 on any existing one.
func (f floor) createByApply(ctx context.Context, db *unstructured.Unstructured, kind, resource string, meta map[string]any, spec any) error {
	metadata := map[string]any{"name": db.GetName(), "namespace": db.GetNamespace(), "resourceVersion": "1"}
	for field, value := range meta {
		metadata[field] = value
	}
	object := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}
	return patch(ctx, f.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}), db, object)
}

func (f floor) mergeStatus(ctx context.Context, db *unstructured.Unstructured) error {
	body := fmt.Sprintf(`{"status":{"message":%q}}`, message(db))
	_, err := f.databases().Namespace(db.GetNamespace()).
		Patch(ctx, db.GetName(), types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status")
	return err
}

// A forced server-side apply.
func patch(ctx context.Context, resource dynamic.NamespaceableResourceInterface, db *unstructured.Unstructured, object any, subresource ...string) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	force := true
	_, err = resource.Namespace(db.GetNamespace()).
		Patch(ctx, db.GetName(), types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "floor", Force: &force}, subresource...)
	return err
}
