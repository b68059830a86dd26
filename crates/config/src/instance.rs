//! The server instance: the server of a plan with its state, its replicas and its upstreams.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use creole::client::Address;
use creole::internal::catch_panic;
use creole::internal::process::Reaper;
use creole::internal::replacement::Replacement;
use creole::internal::replicas::Replicas;
use creole::internal::telemetry::Telemetry;
use creole::state::{State, StateProtection};
use creole::{Sealer, Secrets, Server, Service};
use creole_gateway::audit::{AuditExporter, AuditScope};
use creole_gateway::federation::{Federation, FederationReplacement};
use creole_gateway::layers::SharedPinSet;
use creole_gateway::upstream::{Affinity, UpstreamSettings};
use creole_tools::PackOptions;
use creole_tools::recipe::Recipe;

use crate::assemble::assemble_with_site;
use crate::instance_state::InstanceState;
use crate::pin_locations::servers_with_shared_pins;
use crate::plan::layer::LayerEnvironment;
use crate::plan::upstream::UpstreamAddress;
use crate::upstream_settings::upstream_settings as planned_settings;
use crate::wordpress::{Site, SiteGate};
use crate::{Plan, RunError, TelemetryExport};

/// Options of the program that runs a plan.
#[derive(Clone)]
pub struct InstanceOptions {
    /// Whether clients see the details of internal errors.
    pub debug: bool,
    /// An upstream program that the plan does not name.
    pub program: Option<Address>,
    /// Whether the server passes that program's identity on as its own.
    pub transparent: bool,
    /// The telemetry of the process, which all its servers and upstreams share.
    pub telemetry: Telemetry,
    /// What the process exports of it.
    pub export: TelemetryExport,
    /// Hands the lines of audit logs to a collector, if one is configured.
    pub audit_exporter: Option<AuditExporter>,
    /// Starts the reaper, which ends the child programs if this process is killed. `None` if it cannot start.
    pub start_reaper: fn() -> Option<Reaper>,
}

/// A running server instance. Clones share it.
#[derive(Clone)]
pub struct ServerInstance {
    /// Handles calls.
    pub service: Service,
    /// Keeps everything that outlives a request.
    pub state: State,
    /// The replicas that share the state, if it can be shared.
    pub replicas: Option<Replicas>,
    /// The pins of tools in that state.
    pins: Option<SharedPinSet>,
    /// Encrypts and authenticates the values that clients hold.
    sealer: Sealer,
    /// The keys of what is stored on the network.
    protection: Option<StateProtection>,
    /// The upstreams.
    pub federation: Federation,
    /// Which callers share an upstream connection.
    affinity: Affinity,
    /// Ends the child programs if this process is killed.
    reaper: Option<Reaper>,
    /// The WordPress site of the tools.
    site: Option<Site>,
    /// Authenticates HTTP callers at the site, if they call under their own account.
    pub site_gate: Option<SiteGate>,
    /// Whether it is the instance that serves, and not one that was replaced or is being prepared.
    is_current: Arc<AtomicBool>,
}

impl ServerInstance {
    /// Starts the server of a plan.
    ///
    /// # Errors
    /// When its state or its keys cannot be read, or a part of the plan cannot be built.
    pub async fn new(
        plan: &Plan,
        options: &InstanceOptions,
        affinity: Affinity,
    ) -> Result<Self, RunError> {
        catch_panic::install_hook(options.debug);
        let InstanceState { state, sealer, protection } = InstanceState::open(plan).await?;
        let state = state.measured(options.telemetry.metrics());
        let wait = plan.server.limits.list_wait;
        let (federation, reaper) =
            (Federation::default().with_list_wait(wait), start_reaper(plan, options));
        let site = crate::site(plan);
        let peers =
            Some(&state).filter(|it| it.is_shared()).and_then(|it| Replicas::new(it.clone()));
        if let Some(peers) = &peers {
            peers.announce(options.telemetry.metrics());
        }
        let is_current = Arc::new(AtomicBool::new(true));
        let pins = peers.as_ref().map(|peers| SharedPinSet::new(peers.state().clone()));
        if let Some(pins) = &pins {
            pins.load(servers_with_shared_pins(plan)).await;
        }
        let environment =
            layer_environment(options, affinity, peers.as_ref(), &is_current, pins.as_ref());
        let server =
            build_server(plan, options, &federation, reaper.as_ref(), site.as_ref(), &environment)?;
        let service = server.state(state.clone()).sealer(sealer.clone()).start();
        let mut servers = upstream_settings(plan, options, affinity, peers.as_ref(), environment)?;
        let addresses = servers.iter_mut().map(|settings| &mut settings.address);
        let reaper = attach_reaper(addresses, reaper, options.start_reaper);
        federation.start_upstreams(servers, &service.registry(), plan.has_own_items());
        let gate = site.as_ref().filter(|_| plan.signs_in_at_a_site()).map(SiteGate::new);
        Ok(Self {
            service,
            state,
            replicas: peers,
            pins,
            sealer,
            protection,
            federation,
            affinity,
            reaper,
            site,
            site_gate: gate,
            is_current,
        })
    }

    /// Waits until no other replica waits for a call that runs here.
    pub(crate) async fn finish_replica_requests(&self) {
        if let Some(peers) = &self.replicas {
            peers.finish_requests().await;
        }
    }

    /// Closes the upstream connections and deregisters this replica.
    pub async fn close(&self) {
        if let Some(peers) = &self.replicas {
            peers.leave().await;
        }
        self.federation.close().await;
    }

    /// Seals with the newest of these keys from now on.
    pub(crate) fn reload_keys(&self, secrets: &Secrets) {
        self.sealer.set_secrets(secrets);
        if let Some(protection) = &self.protection {
            protection.set_secrets(secrets);
        }
    }

    /// Prepares the replacement of this instance by a new plan.
    pub(crate) fn prepare_replacement(
        &self,
        plan: &Plan,
        options: &InstanceOptions,
    ) -> Result<PendingReload, RunError> {
        let federation = Federation::default().with_list_wait(plan.server.limits.list_wait);
        let reaper = self.reaper.clone().or_else(|| start_reaper(plan, options));
        let site = self.site_of(plan);
        let is_current = Arc::new(AtomicBool::new(false));
        let replicas = self.replicas.as_ref();
        let pins = self.pins.as_ref();
        let environment = layer_environment(options, self.affinity, replicas, &is_current, pins);
        let server =
            build_server(plan, options, &federation, reaper.as_ref(), site.as_ref(), &environment)?;
        let mut servers = upstream_settings(plan, options, self.affinity, replicas, environment)?;
        let addresses = servers.iter_mut().map(|settings| &mut settings.address);
        let reaper = attach_reaper(addresses, reaper, options.start_reaper);
        let successor = server.state(self.state.clone()).prepare_replacement(&self.service);
        let behind = self.federation.prepare_replacement(
            servers,
            successor.registry(),
            plan.has_own_items(),
        );
        let served = Self { federation, reaper, site, is_current, ..self.clone() };
        let before = Arc::clone(&self.is_current);
        Ok(PendingReload { instance: served, replacement: successor, federation: behind, before })
    }

    /// The site of a plan. The current one is reused if its settings did not change.
    fn site_of(&self, plan: &Plan) -> Option<Site> {
        match (&self.site, &plan.wordpress) {
            (Some(site), Some(settings)) if site.settings() == settings => Some(site.clone()),
            (Some(site), Some(settings)) => Some(site.with_settings(settings.clone())),
            _ => crate::site(plan),
        }
    }
}

/// The prepared replacement of a running instance.
pub(crate) struct PendingReload {
    instance: ServerInstance,
    replacement: Replacement,
    federation: FederationReplacement,
    /// Whether the running instance is the one that serves.
    before: Arc<AtomicBool>,
}

impl PendingReload {
    /// Waits until each upstream has connected or failed.
    pub(crate) async fn wait_until_ready(&self) {
        self.federation.wait_until_ready().await;
    }

    /// Takes over from the running instance and returns the lists that differ. Unused upstreams end with their last
    /// call.
    pub(crate) fn swap(self) -> (ServerInstance, Vec<&'static str>) {
        let leaving = self.federation.swap(&self.instance.federation);
        let before = self.replacement.swap();
        self.before.store(false, Ordering::Release);
        self.instance.is_current.store(true, Ordering::Release);
        if let (Some(gate), Some(site)) = (&self.instance.site_gate, &self.instance.site) {
            gate.set_site(site);
        }
        let changed = before.changed_lists().iter().map(|kind| kind.member()).collect();
        tokio::spawn(async move {
            before.wait_until_drained().await;
            leaving.close().await;
        });
        (self.instance, changed)
    }
}

/// Starts a reaper if tools of this server run programs.
fn start_reaper(plan: &Plan, options: &InstanceOptions) -> Option<Reaper> {
    match plan.offered_recipes().any(Recipe::runs_programs) {
        true => (options.start_reaper)(),
        false => None,
    }
}

/// Attaches all programs among these addresses to one reaper: this one, or a new one. If none can be started, the
/// programs must notice the end of their input. Returns the reaper for later calls.
pub fn attach_reaper<'a>(
    addresses: impl Iterator<Item = &'a mut Address>,
    mut reaper: Option<Reaper>,
    start: fn() -> Option<Reaper>,
) -> Option<Reaper> {
    for address in addresses {
        if let Address::Child(program) = address {
            reaper = reaper.or_else(start);
            program.reaper.clone_from(&reaper);
        }
    }
    reaper
}

/// What the layers of a server need of this process. A server with one client shares stdout with the protocol.
fn layer_environment(
    options: &InstanceOptions,
    affinity: Affinity,
    replicas: Option<&Replicas>,
    is_current: &Arc<AtomicBool>,
    pins: Option<&SharedPinSet>,
) -> LayerEnvironment {
    LayerEnvironment {
        telemetry: options.telemetry.clone(),
        audit_exporter: options.audit_exporter.clone(),
        audit_scope: AuditScope::Server(Arc::clone(is_current)),
        is_stdout_free: affinity != Affinity::Single,
        state: replicas.map(|replicas| replicas.state().clone()),
        pins: pins.cloned(),
        replica: replicas.map(|replicas| replicas.name().into()),
    }
}

fn build_server(
    plan: &Plan,
    options: &InstanceOptions,
    federation: &Federation,
    reaper: Option<&Reaper>,
    site: Option<&Site>,
    environment: &LayerEnvironment,
) -> Result<Server, RunError> {
    let packs = PackOptions { reaper: reaper.cloned(), ..PackOptions::default() };
    let server = assemble_with_site(plan, &packs, site, federation, environment);
    let server = server.map_err(|refusal| RunError::Serve(refusal.to_string()))?;
    Ok(server.debug(options.debug).telemetry(options.telemetry.clone()))
}

/// The settings of the planned upstreams and of the program on the command line. Over stdio there is one caller, which
/// has each upstream to itself.
fn upstream_settings(
    plan: &Plan,
    options: &InstanceOptions,
    affinity: Affinity,
    peers: Option<&Replicas>,
    environment: LayerEnvironment,
) -> Result<Vec<UpstreamSettings>, RunError> {
    let environment = LayerEnvironment { audit_scope: AuditScope::Layer, ..environment };
    let mut program = options.program.clone();
    let mut servers = Vec::new();
    for upstream in &plan.upstreams {
        let mut planned = planned_settings(upstream, &environment)
            .map_err(|refusal| RunError::Refused(format!("`{}`: {refusal}", upstream.name)))?;
        if planned.affinity == Affinity::Principal {
            planned.affinity = affinity;
        }
        // The program on the command line replaces a preset upstream.
        if matches!(upstream.address, UpstreamAddress::Preset(_))
            && let Some(address) = program.take()
        {
            planned.address = address;
            planned.detects_dialect = true;
        }
        planned.input_timeout = plan.server.limits.input_timeout;
        planned.replicas = peers.cloned();
        planned.telemetry = options.telemetry.clone();
        servers.push(planned);
    }
    if let Some(address) = program {
        let transparent = options.transparent;
        let timeout = plan.server.limits.input_timeout;
        let peers = peers.cloned();
        let defaults = UpstreamSettings { detects_dialect: true, ..UpstreamSettings::new(address) };
        servers.push(UpstreamSettings {
            affinity,
            transparent,
            input_timeout: timeout,
            replicas: peers,
            telemetry: options.telemetry.clone(),
            ..defaults
        });
    }
    Ok(servers)
}
