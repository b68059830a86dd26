//! The lanes of a call: how it reaches the gateway, and how the gateway forwards it.

use super::super::sample::Era;

/// The transport of one end of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaneProtocol {
    Http,
    Stdio,
}

impl LaneProtocol {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::Stdio => "stdio",
        }
    }

    /// The numbers of calls in flight: connections with a call each, or calls on one pair of pipes.
    pub(super) fn widths(self) -> [usize; 2] {
        match self {
            Self::Http => [1, 32],
            Self::Stdio => [1, 64],
        }
    }
}

/// One lane through a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lane {
    /// The transport between the client and the gateway.
    pub(super) front: LaneProtocol,
    /// The transport between the gateway and the upstream.
    pub(super) behind: LaneProtocol,
    /// The era of the client.
    pub(super) client: Era,
    /// The era between the gateway and the upstream.
    pub(super) server: Era,
}

const fn lane(front: LaneProtocol, behind: LaneProtocol, client: Era, server: Era) -> Lane {
    Lane { front, behind, client, server }
}

impl Lane {
    /// Whether client and upstream use the same era.
    pub(super) fn is_same_era(self) -> bool {
        self.client == self.server
    }

    /// The same lane to an upstream of the client's own era.
    pub(super) fn within_era(self) -> Self {
        Self { server: self.client, ..self }
    }

    /// The title in the report.
    pub(super) fn title(self) -> String {
        let (front, behind) = (self.front.name(), self.behind.name());
        format!("{front} -> {behind}, {} client, {} server", self.client.name(), self.server.name())
    }
}

/// All measured lanes: within an era, and across.
pub(super) const LANES: [Lane; 11] = [
    lane(LaneProtocol::Http, LaneProtocol::Http, Era::Legacy, Era::Legacy),
    lane(LaneProtocol::Http, LaneProtocol::Http, Era::Modern, Era::Modern),
    lane(LaneProtocol::Http, LaneProtocol::Http, Era::Legacy, Era::Modern),
    lane(LaneProtocol::Http, LaneProtocol::Http, Era::Modern, Era::Legacy),
    lane(LaneProtocol::Http, LaneProtocol::Stdio, Era::Legacy, Era::Legacy),
    lane(LaneProtocol::Http, LaneProtocol::Stdio, Era::Modern, Era::Modern),
    lane(LaneProtocol::Http, LaneProtocol::Stdio, Era::Legacy, Era::Modern),
    lane(LaneProtocol::Http, LaneProtocol::Stdio, Era::Modern, Era::Legacy),
    lane(LaneProtocol::Stdio, LaneProtocol::Http, Era::Legacy, Era::Legacy),
    lane(LaneProtocol::Stdio, LaneProtocol::Http, Era::Modern, Era::Modern),
    lane(LaneProtocol::Stdio, LaneProtocol::Http, Era::Legacy, Era::Modern),
];
