//! Examples in C that avoid the commonest mistakes.

use paceline_verifier::Hint;

/// An example of code that the verifier understands.
pub(super) fn example(hint: Hint) -> Option<&'static str> {
    Some(match hint {
        Hint::MissingBoundsCheck => {
            "\
struct ethhdr *eth = data;
if ((void *)(eth + 1) > data_end)
        return XDP_PASS;
/* eth->h_proto may be read from here on */"
        }
        Hint::ShortBoundsCheck => {
            "\
struct iphdr *ip = (void *)(eth + 1);
if ((void *)(ip + 1) > data_end)        /* covers eth and all of ip */
        return XDP_PASS;"
        }
        Hint::NullCheck => {
            "\
value = bpf_map_lookup_elem(&map, &key);
if (!value)
        return XDP_PASS;"
        }
        Hint::BoundOffset => {
            "\
if (offset >= sizeof(table))
        return XDP_PASS;
entry = table[offset];                  /* or table[offset & 63] */"
        }
        Hint::StalePacketPointer => {
            "\
if (bpf_xdp_adjust_head(ctx, delta))
        return XDP_ABORTED;
data = (void *)(long)ctx->data;
data_end = (void *)(long)ctx->data_end; /* and compare again */"
        }
        Hint::EndedSlice => {
            "\
char buffer[sizeof(struct ethhdr)];
eth = bpf_dynptr_slice_rdwr(&packet, 0, buffer, sizeof(buffer));
if (!eth)
        return XDP_ABORTED;
/* buffer is in use as long as eth is */"
        }
        Hint::BoundLoop => "for (int i = 0; i < 64 && more(ctx); i++)\n        step(ctx);",
        Hint::Initialize => "__u32 key = 0;",
        Hint::FewerPaths => {
            "\
__u32 *action = bpf_map_lookup_elem(&actions, &port);   /* in the place of a comparison for each port */
return action ? *action : XDP_PASS;"
        }
        Hint::ReleaseRecord => {
            "\
if (!wanted) {
        bpf_ringbuf_discard(record, 0);
        return XDP_PASS;
}"
        }
        Hint::ReleaseSocket => {
            "\
sk = bpf_sk_lookup_tcp(ctx, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
if (sk) {
        found = 1;
        bpf_sk_release(sk);
}"
        }
        Hint::ReleaseConnection => {
            "\
ct = bpf_xdp_ct_lookup(ctx, &tuple, sizeof(tuple.ipv4), &opts, sizeof(opts));
if (ct) {
        known = 1;
        bpf_ct_release(ct);
}"
        }
        Hint::InsertConnection => {
            "\
new = bpf_xdp_ct_alloc(ctx, &tuple, sizeof(tuple.ipv4), &opts, sizeof(opts));
if (new) {
        ct = bpf_ct_insert_entry(new);
        if (ct)
                bpf_ct_release(ct);
}"
        }
        Hint::DestroyIterator => {
            "\
bpf_for(i, 0, 10)       /* makes, steps and destroys the iterator */
        sum += i;"
        }
        Hint::Unlock => {
            "\
bpf_spin_lock(&value->lock);
value->packets++;
bpf_spin_unlock(&value->lock);          /* before any other call, and before return */"
        }
        Hint::StackTooDeep => {
            "\
struct {
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
        __uint(max_entries, 1);
        __type(key, __u32);
        __type(value, struct scratch);
} scratch SEC(\".maps\");"
        }
        Hint::OtherHelper => {
            "\
/* XDP has no bpf_skb_ helpers, it reads the packet through pointers: */
__u8 *data = (void *)(long)ctx->data;
if ((void *)(data + 1) > (void *)(long)ctx->data_end)
        return XDP_PASS;"
        }
        Hint::License => "char _license[] SEC(\"license\") = \"GPL\";",
        Hint::OffByOne => {
            "\
if (index >= sizeof(table) / sizeof(table[0]))  /* not > */
        return XDP_PASS;
entry = table[index];"
        }
        Hint::Optimize => "clang -O2 -g -target bpf -c program.bpf.c -o program.o",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hint_has_an_example() {
        let missing: Vec<_> = Hint::ALL.iter().filter(|hint| example(**hint).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
