package lifecycle

// State is what the service is doing. The set is closed and append-only.
type State string

// The states.
const (
	Booting     State = "booting"     // workers start
	Checking    State = "checking"    // one real program is run, to see that it can be done
	Opening     State = "opening"     // the listeners are opened
	Ready       State = "ready"       // everything is served
	Maintenance State = "maintenance" // nothing new is taken, what is here goes on
	DrainDelay  State = "drain_delay" // readiness turns callers away, everything is still served
	Draining    State = "draining"    // nothing new is taken, what waits is refused, what runs has its grace
	Hurrying    State = "hurrying"    // what runs is cancelled, its outcomes are still delivered
	Closing     State = "closing"     // nothing is left to deliver; listeners and workers end
	Stopped     State = "stopped"     // the end, in order
	Failed      State = "failed"      // the end, for a fault or cut short
)

// States are all of them, in the order of a life.
func States() []State {
	return []State{Booting, Checking, Opening, Ready, Maintenance, DrainDelay, Draining, Hurrying, Closing, Stopped, Failed}
}

// Event is what happens to the service. The set is closed and append-only.
type Event string

// The events.
const (
	BootFailed         Event = "boot_failed"         // workers do not start
	WorkersReady       Event = "workers_ready"       // they did
	CheckFailed        Event = "check_failed"        // the self-check
	CheckPassed        Event = "check_passed"        //
	Opened             Event = "opened"              // all listeners are open
	ListenerFailed     Event = "listener_failed"     // one cannot be opened, or fails later
	MaintenanceEntered Event = "maintenance_entered" // also with another reason while in it
	MaintenanceLeft    Event = "maintenance_left"    //
	ReloadBegan        Event = "reload_began"        //
	ReloadEnded        Event = "reload_ended"        // well or not; the transition's reason says why not
	Stop               Event = "stop"                // the first request to stop
	Hurry              Event = "hurry"               // the second
	Cut                Event = "cut"                 // the third, or the stop has taken too long
	DelayOver          Event = "delay_over"          // of drain_delay
	Drained            Event = "drained"             // every outcome was delivered or given up
	Ended              Event = "ended"               // everything has ended after a stop
	EndedBadly         Event = "ended_badly"         // everything has ended after a fault
)

// table says what becomes of a state. An event that is not in a state's row cannot happen there.
var table = map[State]map[Event]State{
	Booting: {
		WorkersReady: Checking,
		BootFailed:   Closing,
		Stop:         Closing,
	},
	Checking: {
		CheckPassed: Opening,
		CheckFailed: Closing,
		Stop:        Closing,
	},
	Opening: {
		Opened:             Ready,
		MaintenanceEntered: Maintenance, // one that outlived a restart
		ListenerFailed:     Closing,
		Stop:               Closing,
	},
	Ready: {
		MaintenanceEntered: Maintenance,
		ReloadBegan:        Ready,
		ReloadEnded:        Ready,
		ListenerFailed:     Draining,
		Stop:               DrainDelay,
	},
	Maintenance: {
		MaintenanceEntered: Maintenance,
		MaintenanceLeft:    Ready,
		ReloadBegan:        Maintenance,
		ReloadEnded:        Maintenance,
		ListenerFailed:     Draining,
		Stop:               Draining, // callers have been turned away for long
	},
	// A reload that began before a stop may end at any time after it.
	DrainDelay: {
		DelayOver:      Draining,
		ReloadEnded:    DrainDelay,
		ListenerFailed: Draining,
		Hurry:          Hurrying,
		Cut:            Failed,
	},
	Draining: {
		Drained:     Closing,
		ReloadEnded: Draining,
		Stop:        Hurrying, // it drains because a listener failed
		Hurry:       Hurrying,
		Cut:         Failed,
	},
	Hurrying: {
		Drained:     Closing,
		ReloadEnded: Hurrying,
		Hurry:       Hurrying, // the first request brought it here, see Draining
		Cut:         Failed,
	},
	Closing: {
		Ended:       Stopped,
		EndedBadly:  Failed,
		ReloadEnded: Closing,
		Stop:        Closing,
		Hurry:       Closing,
		Cut:         Failed,
	},
	Stopped: {},
	Failed:  {},
}

// Next is the state that follows on e in s; false where e cannot happen in s.
func Next(s State, e Event) (State, bool) {
	next, ok := table[s][e]
	return next, ok
}

// Ready tells whether a load balancer should send callers here.
func (s State) Ready() bool { return s == Ready }

// Admits tells whether new sessions and executions are taken.
func (s State) Admits() bool { return s == Ready || s == DrainDelay }

// Final tells whether nothing follows.
func (s State) Final() bool { return s == Stopped || s == Failed }
