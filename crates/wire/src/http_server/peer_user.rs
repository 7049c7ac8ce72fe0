//! Finds out which user a connection on this machine comes from, according to the kernel's socket table.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Returns the id of the user who opened the other end of an open connection on this machine, or `None` if the kernel's
/// table has no clear answer.
pub(crate) fn peer_user(peer: SocketAddr, own: SocketAddr) -> Option<u32> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    find_user(&[read("/proc/net/tcp"), read("/proc/net/tcp6")], peer, own)
}

/// The state of an open connection in a socket table.
const ESTABLISHED: &str = "01";

/// Finds the user of the socket with these addresses in socket tables (proc_net_tcp(5)). A closed connection that still
/// waits is listed too, for user 0 and without an inode, and its addresses can be in use again: only an open socket counts,
/// and if there are two, they must belong to the same user.
fn find_user(tables: &[String], local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    let canonical = |address: SocketAddr| (address.ip().to_canonical(), address.port());
    let mut users = tables.iter().flat_map(|table| table.lines().skip(1)).filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_match = parse_address(fields.get(1)?)? == canonical(local)
            && parse_address(fields.get(2)?)? == canonical(remote);
        if !is_match {
            return None;
        }
        let is_open = *fields.get(3)? == ESTABLISHED && *fields.get(9)? != "0";
        // A match that is not an open socket makes the result unclear.
        Some(fields.get(7)?.parse().ok().filter(|_: &u32| is_open))
    });
    let first = users.next()??;
    users.all(|user| user == Some(first)).then_some(first)
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
        let find_in = |tables: &[&str], local: &str| {
            let tables: Vec<_> = tables.iter().map(|table| (*table).to_owned()).collect();
            find_user(&tables, address(local), address("127.0.0.1:8787"))
        };
        let find = |local: &str| find_in(&[table], local);
        assert_eq!(find("127.0.0.1:54321"), Some(1000));
        assert_eq!(find("127.0.0.1:54322"), Some(1001), "an IPv4 address of an IPv6 socket");
        assert_eq!(find("127.0.0.1:54323"), None);
        assert_eq!(find_in(&["garbage", ""], "127.0.0.1:1"), None);
        // The same addresses a second time: a closed connection that still waits, and an open one of another user.
        let waiting = "header\n 0: 0100007F:D431 0100007F:2253 06 0:0 0:0 0 0 0 0 3 0\n";
        let other = "header\n 0: 0100007F:D431 0100007F:2253 01 0:0 0:0 0 0 0 9 1 0\n";
        for second in [waiting, other] {
            assert_eq!(find_in(&[second, table], "127.0.0.1:54321"), None);
            assert_eq!(find_in(&[table, second], "127.0.0.1:54321"), None);
        }
        assert_eq!(find_in(&[waiting], "127.0.0.1:54321"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_user_of_a_real_connection_is_found() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let client = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let own = tokio::net::UnixStream::pair().unwrap().0.peer_cred().unwrap().uid();
            let (peer, local) = (stream.peer_addr().unwrap(), stream.local_addr().unwrap());
            assert_eq!(peer_user(peer, local), Some(own));
            drop(client);
        });
    }
}
