package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// The same operator as somebody would write it for this one kind: typed children, Owns, CreateOrUpdate.
type reconciler struct {
	client.Client
	scheme *runtime.Scheme
}

func controllerRuntime(ctx context.Context, cfg *rest.Config, workers int) error {
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	db := database()
	if err := ctrl.NewControllerManagedBy(mgr).For(db).Owns(&corev1.Pod{}).Owns(&corev1.Service{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(&reconciler{mgr.GetClient(), scheme}); err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		for _, kind := range []client.Object{database(), &corev1.Pod{}, &corev1.Service{}} {
			if _, err := mgr.GetCache().GetInformer(ctx, kind); err != nil { // blocks until it is synced
				return err
			}
		}
		ready()
		return nil
	})); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func database() *unstructured.Unstructured {
	db := &unstructured.Unstructured{}
	db.SetGroupVersionKind(databaseKind)
	return db
}

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	db := database()
	if err := r.Get(ctx, req.NamespacedName, db); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if db.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil
	}
	e := engineOf(db)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: db.GetName(), Namespace: db.GetNamespace()}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, pod, func() error {
		pod.Labels = labels(db)
		if pod.CreationTimestamp.IsZero() {
			pod.Spec = e.podSpec()
		}
		return controllerutil.SetControllerReference(db, pod, r.scheme)
	}); err != nil {
		return ctrl.Result{}, err
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: db.GetName(), Namespace: db.GetNamespace()}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, service, func() error {
		service.Labels = labels(db)
		if service.CreationTimestamp.IsZero() {
			service.Spec = e.serviceSpec(db)
		}
		return controllerutil.SetControllerReference(db, service, r.scheme)
	}); err != nil {
		return ctrl.Result{}, err
	}
	if old, _, _ := unstructured.NestedString(db.Object, "status", "message"); old != message(db) {
		if err := unstructured.SetNestedField(db.Object, message(db), "status", "message"); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, r.Status().Update(ctx, db)
	}
	return ctrl.Result{}, nil
}
