//! Which user a connection on this machine comes from, as the kernel's socket table says.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::TcpStream;

/// Returns the id of the user who opened the other end of a connection on this machine, or `None` if the kernel does not
/// say.
pub(crate) fn peer_user(stream: &TcpStream) -> Option<u32> {
    let (peer, own) = (stream.peer_addr().ok()?, stream.local_addr().ok()?);
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().find_map(|path| {
        let table = std::fs::read_to_string(path).ok()?;
        find_user(&table, peer, own)
    })
}

/// Finds the user of the socket with these addresses in a socket table (proc_net_tcp(5)).
fn find_user(table: &str, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    let canonical = |address: SocketAddr| (address.ip().to_canonical(), address.port());
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let is_match = parse_address(fields.next()?)? == canonical(local)
            && parse_address(fields.next()?)? == canonical(remote);
        // State, queues, timer and retransmits are between the addresses and the user.
        if is_match { fields.nth(4)?.parse().ok() } else { None }
    })
}

/// Parses an address of the table: the bytes of each 32-bit group are in the machine's order, the port is a number.
fn parse_address(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let groups = address.len() / 8;
    let mut bytes = Vec::with_capacity(16);
    for group in 0..groups {
        let group = u32::from_str_radix(address.get(group * 8..group * 8 + 8)?, 16).ok()?;
        bytes.extend(group.to_ne_bytes());
    }
    let ip = match groups {
        1 => IpAddr::from(<[u8; 4]>::try_from(bytes).map(Ipv4Addr::from).ok()?),
        4 => IpAddr::from(<[u8; 16]>::try_from(bytes).map(Ipv6Addr::from).ok()?),
        _ => return None,
    };
    Some((ip.to_canonical(), u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]

    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn a_user_is_found_by_both_addresses_of_the_connection() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:2253 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1\n   \
            1: 0100007F:D431 0100007F:2253 01 00000000:00000000 00:00000000 00000000  1000        0 2 1\n   \
            2: 0000000000000000FFFF00000100007F:D432 0000000000000000FFFF00000100007F:2253 01 0:0 0:0 0 1001 0 3 1\n";
        let address = |text: &str| text.parse().unwrap();
        let find = |local: &str| find_user(table, address(local), address("127.0.0.1:8787"));
        assert_eq!(find("127.0.0.1:54321"), Some(1000));
        assert_eq!(find("127.0.0.1:54322"), Some(1001), "an IPv4 address of an IPv6 socket");
        assert_eq!(find("127.0.0.1:54323"), None);
        assert_eq!(find_user("garbage", address("127.0.0.1:1"), address("127.0.0.1:2")), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_user_of_a_real_connection_is_found() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let own = tokio::net::UnixStream::pair().unwrap().0.peer_cred().unwrap().uid();
            assert_eq!(peer_user(&stream), Some(own));
            drop(client);
        });
    }
}
