//! What travels between a pager and its clients besides fault messages.
//!
//! The client is known by the badge of its capability, as it is in a fault message.

tench_protocol::codes! {
    /// What can be asked.
    pub enum Label {
        /// **Attach** a region. Words: first address, a multiple of 2 MiB. One capability: the page table of level 3 that
        /// shows it (`WRITE`). Errors: `BadRegion`, `NoTable`.
        Attach = 16;
        /// **Detach** a region. Words: first address. Its pages are gone, except where another region shows them.
        /// Errors: `NoSuchRegion`.
        Detach = 17;
        /// **Fork** from another client: lets the region at an address, which is attached and empty, show what the other's
        /// region at that address shows now. Words: address, the other client's number. Answers the number of pages.
        /// Errors: `NoSuchRegion`, `NotEmpty`, `NotAllowed`, `Refused`.
        Fork = 18;
        /// **Forget** a client that has ended: detaches all its regions. Words: the client's number. Only by the capability
        /// without a badge. Errors: `NotAllowed`.
        Forget = 19;
        /// **Statistics**. Answers pages that were new, copied, written in place, joined; faults refused; free pages.
        Statistics = 20;
        /// **Stop** serving, once this is answered. Only by the capability without a badge. Errors: `NotAllowed`.
        Stop = 21;
    }
    /// Why a request or a fault was refused.
    pub enum Error {
        /// The label or the number of words is wrong.
        BadRequest = 1, "the pager does not know this request; see its protocol";
        /// The region is not aligned, or attached already.
        BadRegion = 2, "a region begins at a multiple of 2 MiB, and is attached once";
        /// No page table came with the request.
        NoTable = 3, "no page table came along; pass the one of level 3 that shows the region";
        /// There is no such region.
        NoSuchRegion = 4, "no such region; attach it first";
        /// The region to fill is not empty.
        NotEmpty = 5, "the region has pages already; share into a new one";
        /// The pager does not share that client's pages with this one.
        NotAllowed = 6, "this client may not see that one's pages";
        /// A fault outside of what the pager provides.
        NotMine = 7, "the address lies in no region of this client, or an instruction was fetched there";
        /// The pager has no free page.
        OutOfPages = 8, "the pager has no free page; detach a region";
        /// The kernel refused a mapping.
        Refused = 9, "the kernel refused the mapping; the client's page table is gone or in use";
    }
}
