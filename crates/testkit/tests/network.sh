# A router of five interfaces; $1 says whether it has rules of its own as well.
set -e
ip link set lo up
sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.default.addr_gen_mode=1
ip link add va type veth peer name vb
ip link add vc type veth peer name vd
ip link add ve type veth peer name vf
ip tuntap add dev tun0 mode tun
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
sysctl -qw net.ipv4.conf.vd.forwarding=0 net.ipv6.conf.vb.forwarding=0 net.ipv4.conf.ve.ignore_routes_with_linkdown=1
ip link set vc mtu 9000
for i in va vb vc vd ve tun0; do ip link set $i up; done
ip addr add 10.0.0.1/24 dev va; ip addr add fd00::1/64 dev va nodad
ip addr add 10.1.0.1/16 dev vc; ip addr add fd05::1/64 dev vc nodad
ip addr add 10.2.0.1/16 dev ve
ip addr add 10.3.0.1 peer 10.3.0.2 dev tun0
ip route add default via 10.1.0.2
ip route add 10.9.0.0/16 via 10.0.0.2
ip route add 10.9.9.0/24 via 10.0.0.3
ip route add 10.9.9.9 via 10.1.0.2
ip route add 10.9.10.0/24 via 10.1.0.2 metric 20
ip route add 10.9.10.0/24 via 10.0.0.2 metric 10
ip route add 10.9.11.0/24 tos 0x10 via 10.0.0.2
ip route add 10.9.11.0/24 via 10.1.0.2
ip route add 10.10.0.0/16 via 10.0.0.2 mtu 1300 metric 7 src 10.1.0.1
ip route add blackhole 10.11.0.0/16
ip route add unreachable 10.13.0.0/16
ip route add prohibit 10.16.0.0/16
ip route add throw 10.17.0.0/16
ip route add 10.15.0.0/16 via inet6 fd00::2 dev va
ip route add 10.18.0.0/16 via 10.2.0.2
ip route add 10.20.0.0/16 via 10.0.0.2 table 100
ip route add 10.9.0.0/16 via 10.1.0.2 table 100
ip route add 10.21.0.0/16 encap ip id 30 dst 10.0.0.2 dev va
ip -6 route add default via fd00::2
ip -6 route add fd01::/64 via fd05::2 mtu 1400
ip -6 route add blackhole fd03::/64
ip -6 route add unreachable fd04::/64
ip -6 route add prohibit fd06::/64
ip -6 route add fd07::/64 via fd00::3 metric 10
ip -6 route add fd07::/64 via fd05::2 metric 20
ip -6 route add fd08::/64 via fd05::2 table 100
ip -6 route add fd09::/64 dev tun0
ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev va
ip neigh add 10.1.0.2 lladdr 02:00:00:00:00:03 dev vc nud stale
ip neigh add 10.1.0.9 lladdr 02:00:00:00:00:09 dev vc nud noarp
ip neigh add fd00::2 lladdr 02:00:00:00:00:04 dev va
ip neigh add fd05::2 lladdr 02:00:00:00:00:05 dev vc nud reachable
if [ "$1" = rules ]; then
  ip rule add fwmark 5/0xff lookup 100
  ip rule add from 1.2.3.0/24 to 10.9.0.0/16 iif va lookup 100
  ip rule add unreachable from 9.9.9.9
  ip rule add blackhole from 9.9.9.10
  ip rule add prohibit to 10.9.9.9
  ip rule add not from 1.2.0.0/16 tos 0x10 ipproto tcp dport 80-90 lookup 100
  ip rule add iif vb lookup main suppress_prefixlength 8
  ip -6 rule add fwmark 5/0xff lookup 100
  ip -6 rule add from fd05::/64 lookup 100
fi
