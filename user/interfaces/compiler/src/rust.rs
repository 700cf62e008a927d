//! Generation of the client and of the server's dispatch.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::Ident;

use crate::model::{ATTACH, Interface, Method, Of, Shape};

/// Generates tokens whose variables cannot be confused with parameters.
macro_rules! ours {
    ($($token:tt)*) => { quote_spanned!(Span::mixed_site()=> $($token)*) };
}

/// Returns the attribute's expansion: the trait, the client, and the dispatch of a server.
pub fn expand(interface: &Interface) -> TokenStream {
    let service = &interface.service;
    let (client, visibility, trait_name) = (&interface.client, &service.vis, &service.ident);
    let (number, version) = (interface.number(), interface.version);
    let summary = format!("Client of [`{trait_name}`].");
    let stubs = interface.methods.iter().map(|method| stub(interface, method));
    let constants = constants(interface);
    let dispatch = dispatch(interface);
    let attach = interface.shares().then(|| attach_stub(interface));
    quote! {
        #service

        #[doc = #summary]
        #[derive(Clone, Copy, Debug)]
        #visibility struct #client<Way = ::tench_protocol::sys::Cap<::tench_protocol::sys::Endpoint>> {
            way: Way,
        }

        impl #client<()> {
            /// Number of the interface.
            pub const INTERFACE: u16 = #number;
            /// Version of the interface.
            pub const VERSION: u16 = #version;
            #constants

            #dispatch
        }

        impl<Way> #client<Way> {
            /// Makes a client of the server that is reached this way.
            pub const fn at(way: Way) -> Self {
                #client { way }
            }
        }

        impl<Way: Copy> #client<Way> {
            /// Returns the way to the server.
            pub const fn way(self) -> Way {
                self.way
            }
        }

        #[allow(clippy::too_many_arguments)]
        impl<Way: ::tench_protocol::Transport> #client<Way> {
            #(#stubs)*
            #attach
        }
    }
}

/// Generates the labels of the methods.
fn constants(interface: &Interface) -> TokenStream {
    let (client, trait_name, version) = (&interface.client, &interface.service.ident, interface.version);
    let constants = interface.methods.iter().map(|method| {
        let (constant, number) = (method.constant(), method.number);
        let text = format!("Label of [`{}`]({trait_name}::{}).", method.name, method.name);
        quote! {
            #[doc = #text]
            pub const #constant: u64 = ::tench_protocol::label(#client::<()>::INTERFACE, #version, #number);
        }
    });
    let attach_label = interface.shares().then(|| {
        quote! {
            /// Label of `attach_buffer`.
            pub const ATTACH_BUFFER: u64 = ::tench_protocol::label(#client::<()>::INTERFACE, #version, #ATTACH);
        }
    });
    quote! {
        #(#constants)*
        #attach_label
    }
}

/// Returns the type of a client method's parameter for an argument.
fn given(shape: &Shape) -> TokenStream {
    match shape {
        Shape::Plain(of) => quote!(#of),
        Shape::Text(_) => quote!(&str),
        Shape::Bytes(_) => quote!(&[u8]),
        Shape::List(element, _) => quote!(&[#element]),
        Shape::Cap(object, _) => quote!(::tench_protocol::sys::Cap<#object>),
        Shape::Shared(false) => quote!(&[u8]),
        Shape::Shared(true) => quote!(&mut [u8]),
    }
}

/// Returns the type of a client method's result.
fn gotten(shape: &Shape) -> TokenStream {
    match shape {
        Shape::Plain(of) => quote!(#of),
        Shape::Text(max) => quote!(::tench_protocol::ArrayString<#max>),
        Shape::Bytes(max) => quote!(::tench_protocol::ArrayVec<u8, #max>),
        Shape::List(element, max) => quote!(::tench_protocol::List<#element, #max>),
        Shape::Cap(object, _) => quote!(::tench_protocol::sys::Cap<#object>),
        Shape::Shared(_) => quote!(::tench_protocol::Region),
    }
}

/// Returns the type in which a value is sent.
fn travelling(shape: &Shape) -> TokenStream {
    match shape {
        Shape::Plain(of) => quote!(#of),
        Shape::Text(max) => quote!(::tench_protocol::Text<'_, #max>),
        Shape::Bytes(max) => quote!(::tench_protocol::Bytes<'_, #max>),
        Shape::List(element, max) => quote!(::tench_protocol::List<#element, #max>),
        Shape::Cap(object, true) => quote!(::tench_protocol::Sent<#object, ::tench_protocol::Given>),
        Shape::Cap(object, false) => quote!(::tench_protocol::Sent<#object>),
        Shape::Shared(_) => quote!(::tench_protocol::Region),
    }
}

/// Returns that type without borrowing, for constants.
fn measured(shape: &Shape) -> TokenStream {
    match shape {
        Shape::Text(max) => quote!(::tench_protocol::Text<'static, #max>),
        Shape::Bytes(max) => quote!(::tench_protocol::Bytes<'static, #max>),
        other => travelling(other),
    }
}

/// Returns one value, or a tuple of several.
fn together(values: &[TokenStream]) -> TokenStream {
    match values {
        [one] => one.clone(),
        several => quote!((#(#several),*)),
    }
}

/// Generates the client's method.
fn stub(interface: &Interface, method: &Method) -> TokenStream {
    let (client, error) = (&interface.client, &interface.error);
    let (name, constant) = (&method.name, method.constant());
    let documentation = &method.documentation;
    let documentation = documentation.iter().map(|line| format!(" {line}"));
    let arguments: Vec<_> = method.arguments().collect();
    let parameters = arguments.iter().map(|(name, shape)| {
        let given = given(shape);
        ours!(#name: #given)
    });
    let results: Vec<_> = method.results.iter().map(gotten).collect();
    let returned = together(&results);
    let slots: Vec<Ident> = method
        .results
        .iter()
        .filter(|shape| matches!(shape, Shape::Cap(..)))
        .enumerate()
        .map(|(index, _)| if index == 0 { format_ident!("into") } else { format_ident!("into_{}", index + 1) })
        .collect();
    let body = if arguments.iter().all(|(_, shape)| shape.is_plain()) && method.results.iter().all(Shape::is_plain) {
        short_call(client, &constant, &arguments, method)
    } else {
        long_call(client, &constant, &arguments, method, &slots)
    };
    let result = ours!(::core::result::Result<#returned, ::tench_protocol::Failure<#error>>);
    let (condition, body) = if method.shares() {
        (ours!(where Way: ::tench_protocol::Shares), sharing(&arguments, &result, &body))
    } else {
        (ours!(), body)
    };
    ours! {
        #(#[doc = #documentation])*
        #[inline]
        pub fn #name(
            self,
            #(#parameters,)*
            #(#slots: ::tench_protocol::sys::CapAddress,)*
        ) -> #result
        #condition
        {
            #body
        }
    }
}

/// Returns the variable for an argument's place in shared memory.
fn region(argument: &Ident) -> Ident {
    format_ident!("region_of_{}", argument, span = Span::mixed_site())
}

/// Generates a call whose arguments are copied into shared memory before, and out of it afterwards.
fn sharing(arguments: &[(&Ident, &Shape)], result: &TokenStream, body: &TokenStream) -> TokenStream {
    let too_long = ours!(ok_or(::tench_protocol::Failure::TooLong)?);
    let put = arguments.iter().filter_map(|(name, shape)| {
        let region = region(name);
        match shape {
            Shape::Shared(false) => Some(ours!(let #region = allocator.put(#name).#too_long;)),
            Shape::Shared(true) => Some(ours!(let #region = allocator.reserve(#name.len()).#too_long;)),
            _ => None,
        }
    });
    let take = arguments.iter().filter_map(|(name, shape)| {
        let region = region(name);
        matches!(shape, Shape::Shared(true)).then(|| ours!(allocator.take(#region, #name);))
    });
    ours! {
        self.way.share(|memory| -> #result {
            let mut allocator = ::tench_protocol::shared::Allocator::new(memory);
            #(#put)*
            let outcome = (|| -> #result { #body })();
            if outcome.is_ok() {
                #(#take)*
            }
            outcome
        })
    }
}

/// Generates the client's side of the request for a buffer.
fn attach_stub(interface: &Interface) -> TokenStream {
    let (client, error) = (&interface.client, &interface.error);
    ours! {
        /// Requests a buffer of at least this many bytes that is shared with the server; the capability to its frame
        /// goes to the empty slot. Returns the buffer and log2 of its size. It replaces this client's previous one.
        pub fn attach_buffer(
            self,
            bytes: u64,
            slot: ::tench_protocol::sys::CapAddress,
        ) -> ::core::result::Result<
            (::tench_protocol::sys::Cap<::tench_protocol::sys::Frame>, u64),
            ::tench_protocol::Failure<#error>,
        > {
            use ::tench_protocol::{Decode, Encode, wire};
            let mut request = wire::Registers::default();
            bytes.encode(&mut request);
            let reply = self.way.call_short(#client::<()>::ATTACH_BUFFER, &request, 0, &[slot]);
            let reply = reply.map_err(|error| self.way.failed(error))?;
            ::tench_protocol::transport::check(reply.words.tag, || reply.words.words[0])?;
            let words = reply.words().ok_or(::tench_protocol::Failure::Malformed)?;
            let kept = ::core::cell::Cell::new(0);
            let mut source = wire::Source::new(words, reply.caps(), &kept);
            let (frame, bits) = <(wire::Sent<::tench_protocol::sys::Frame>, u64)>::decode(&mut source)
                .ok_or(::tench_protocol::Failure::Malformed)?;
            if source.is_done() { Ok((frame.cap(), bits)) } else { Err(::tench_protocol::Failure::Malformed) }
        }
    }
}

/// Generates the server's side of the request for a buffer.
fn attach_arm(interface: &Interface) -> TokenStream {
    let (error, number) = (&interface.error, ATTACH);
    ours! {
        #number => {
            let Some(bytes) = Decode::decode(&mut source) else { return Rejection::BadArguments.write(reply) };
            if !source.is_done() {
                return Rejection::BadArguments.write(reply);
            }
            let Some(attachments) = &mut context.attachments else { return Rejection::NoBuffer.write(reply) };
            match attachments.attach(context.caller, bytes) {
                Ok((frame, bits)) => {
                    let buffer = (wire::Sent::<::tench_protocol::sys::Frame>::new(frame), bits);
                    ::tench_protocol::replies::write::<_, #error>(&Ok(buffer), reply);
                    Flow::Reply
                }
                Err(_) => Rejection::NoBuffer.write(reply),
            }
        }
    }
}

/// Generates a call of plain values, in registers if they fit.
fn short_call(client: &Ident, constant: &Ident, arguments: &[(&Ident, &Shape)], method: &Method) -> TokenStream {
    let names: Vec<_> = arguments.iter().map(|(name, _)| name).collect();
    let types: Vec<_> = arguments.iter().map(|(_, shape)| travelling(shape)).collect();
    let result = &method.result;
    ours! {
        use ::tench_protocol::{Decode, Encode, wire};
        const FITS: bool = 0 #(+ <#types as Encode>::WORDS)* <= ::tench_protocol::transport::SHORT
            && ::tench_protocol::transport::is_short::<#result>();
        let kept = ::core::cell::Cell::new(0);
        if FITS {
            let mut words = wire::Registers::default();
            #(Encode::encode(&#names, &mut words);)*
            let reply = self.way.call_registers(#client::<()>::#constant, &words).map_err(|error| self.way.failed(error))?;
            ::tench_protocol::transport::check(reply.tag, || reply.words[0])?;
            let words = reply.words.get(..reply.tag.length()).ok_or(::tench_protocol::Failure::Malformed)?;
            let mut source = wire::Source::new(words, &[], &kept);
            let result = Decode::decode(&mut source).ok_or(::tench_protocol::Failure::Malformed)?;
            return if source.is_done() { Ok(result) } else { Err(::tench_protocol::Failure::Malformed) };
        }
        let mut request = ::tench_protocol::sys::Message::new(#client::<()>::#constant);
        #(Encode::encode(&#names, &mut request);)*
        let mut reply = ::tench_protocol::sys::Received::new();
        self.way.call(&request, &[], &mut reply).map_err(|error| self.way.failed(error))?;
        ::tench_protocol::transport::check(reply.tag(), || reply.word(0))?;
        let mut source = wire::Source::new(reply.words(), reply.caps(), &kept);
        let result = Decode::decode(&mut source).ok_or(::tench_protocol::Failure::Malformed)?;
        if source.is_done() { Ok(result) } else { Err(::tench_protocol::Failure::Malformed) }
    }
}

/// Generates the code that writes an argument into the message.
fn put(name: &Ident, shape: &Shape) -> TokenStream {
    match shape {
        Shape::Plain(_) => ours!(Encode::encode(&#name, &mut request);),
        Shape::Text(max) => ours! {
            Encode::encode(&wire::Text::<#max>::new(#name).ok_or(::tench_protocol::Failure::TooLong)?, &mut request);
        },
        Shape::Bytes(max) => ours! {
            Encode::encode(&wire::Bytes::<#max>::new(#name).ok_or(::tench_protocol::Failure::TooLong)?, &mut request);
        },
        Shape::List(element, max) => ours! {
            let list = wire::List::<#element, #max>::try_from(#name).map_err(|_| ::tench_protocol::Failure::TooLong)?;
            Encode::encode(&list, &mut request);
        },
        Shape::Cap(object, true) => ours! {
            Encode::encode(&wire::Sent::<#object, wire::Given>::new(#name), &mut request);
        },
        Shape::Cap(object, false) => ours!(Encode::encode(&wire::Sent::<#object>::new(#name), &mut request);),
        Shape::Shared(_) => {
            let region = region(name);
            ours!(Encode::encode(&#region, &mut request);)
        }
    }
}

/// Generates a call with text, lists or capabilities.
fn long_call(
    client: &Ident,
    constant: &Ident,
    arguments: &[(&Ident, &Shape)],
    method: &Method,
    slots: &[Ident],
) -> TokenStream {
    let put: Vec<_> = arguments.iter().map(|(name, shape)| put(name, shape)).collect();
    let take: Vec<_> = method
        .results
        .iter()
        .map(|shape| {
            let of = travelling(shape);
            let value = ours!(<#of as Decode>::decode(&mut source).ok_or(::tench_protocol::Failure::Malformed)?);
            match shape {
                Shape::Plain(_) | Shape::List(..) | Shape::Shared(_) => value,
                Shape::Text(_) | Shape::Bytes(_) => ours!(#value.to_owned()),
                Shape::Cap(..) => ours!(#value.cap()),
            }
        })
        .collect();
    let take = together(&take);
    let arguments: Vec<_> = arguments.iter().map(|(_, shape)| measured(shape)).collect();
    let results: Vec<_> = method.results.iter().map(measured).collect();
    ours! {
        use ::tench_protocol::{Decode, Encode, wire};
        const FITS: bool = 0 #(+ <#arguments as Encode>::WORDS)* <= ::tench_protocol::transport::SHORT
            && 0 #(+ <#results as Encode>::WORDS)* <= ::tench_protocol::transport::SHORT;
        const CAPS: usize = 0 #(+ <#arguments as Encode>::CAPS)*;
        let kept = ::core::cell::Cell::new(0);
        if FITS {
            let mut request = wire::Registers::default();
            #(#put)*
            let reply = self.way.call_short(#client::<()>::#constant, &request, CAPS, &[#(#slots),*]);
            let reply = reply.map_err(|error| self.way.failed(error))?;
            ::tench_protocol::transport::check(reply.words.tag, || reply.words.words[0])?;
            let words = reply.words().ok_or(::tench_protocol::Failure::Malformed)?;
            let mut source = wire::Source::new(words, reply.caps(), &kept);
            let result = #take;
            return if source.is_done() { Ok(result) } else { Err(::tench_protocol::Failure::Malformed) };
        }
        let mut request = ::tench_protocol::sys::Message::new(#client::<()>::#constant);
        #(#put)*
        let mut reply = ::tench_protocol::sys::Received::new();
        self.way.call(&request, &[#(#slots),*], &mut reply).map_err(|error| self.way.failed(error))?;
        ::tench_protocol::transport::check(reply.tag(), || reply.word(0))?;
        let mut source = wire::Source::new(reply.words(), reply.caps(), &kept);
        let result = #take;
        if source.is_done() { Ok(result) } else { Err(::tench_protocol::Failure::Malformed) }
    }
}

/// Generates the server's side: finds the method, checks and reads the arguments, writes the reply.
fn dispatch(interface: &Interface) -> TokenStream {
    let (client, service, version) = (&interface.client, &interface.service.ident, interface.version);
    let arms = interface.methods.iter().map(|method| arm(interface, method));
    let attach = interface.shares().then(|| attach_arm(interface));
    let limits = interface.methods.iter().map(|method| {
        let arguments: Vec<_> = method.arguments().map(|(_, shape)| measured(shape)).collect();
        let results: Vec<_> = method.results.iter().map(measured).collect();
        let long = format!("`{}` of {client} does not fit into a message", method.name);
        ours! {
            const {
                use ::tench_protocol::{Encode, transport};
                assert!(0 #(+ <#arguments as Encode>::WORDS)* <= transport::LONG, #long);
                assert!(0 #(+ <#arguments as Encode>::CAPS)* <= transport::CAPS, #long);
                assert!(0 #(+ <#results as Encode>::WORDS)* <= transport::LONG, #long);
                assert!(0 #(+ <#results as Encode>::CAPS)* <= transport::CAPS, #long);
            }
        }
    });
    ours! {
        /// Carries out a request and writes its reply. A message that is not a request of this interface and version,
        /// or has other arguments than its method, is refused here; the server does not see it.
        pub fn dispatch<S: #service + ?Sized>(
            server: &mut S,
            request: &::tench_protocol::sys::Received,
            context: &mut ::tench_protocol::Context<'_>,
            reply: &mut ::tench_protocol::sys::Message,
        ) -> ::tench_protocol::Flow {
            use ::tench_protocol::{Decode, Flow, Rejection, wire};
            #(#limits)*
            if request.is_fault() {
                return Rejection::NoSuchMethod.write(reply);
            }
            let mut source =
                wire::Source::new(request.words(), request.caps(), &context.kept).with_kinds(context.kind_of);
            // First the part that all labels share, so that few instructions find the method.
            const COMMON: u64 = ::tench_protocol::label(#client::<()>::INTERFACE, #version, 0) >> 16;
            if request.label() >> 16 != COMMON {
                return Rejection::of_label(request.label(), #client::<()>::INTERFACE, #version).write(reply);
            }
            match request.label() as u16 {
                #(#arms)*
                #attach
                _ => Rejection::NoSuchMethod.write(reply),
            }
        }
    }
}

/// Generates what comes before a method's arguments: whether the caller may call it, and the memory shared with it.
fn admission(method: &Method) -> TokenStream {
    let authority = method.needs_authority.then(|| {
        ours! {
            if context.caller != ::tench_protocol::Caller::AUTHORITY {
                return Rejection::NotAllowed.write(reply);
            }
        }
    });
    let power = method.power.as_ref().map(|power| {
        ours! {
            if !context.powers.contains(::tench_protocol::Powers::#power) {
                return Rejection::NotAllowed.write(reply);
            }
        }
    });
    let memory = method.shares().then(|| {
        ours! {
            let Some(memory) = ::tench_protocol::shared::memory_of(&context.attachments, context.caller) else {
                return Rejection::NotAttached.write(reply);
            };
        }
    });
    ours! {
        #authority
        #power
        #memory
    }
}

/// Generates the dispatch of one method.
fn arm(interface: &Interface, method: &Method) -> TokenStream {
    let (service, error) = (&interface.service.ident, &interface.error);
    let (name, number) = (&method.name, method.number);
    let admission = admission(method);
    let takes = method.arguments().map(|(name, shape)| {
        let decoded = match shape {
            Shape::Shared(false) => ours!(::tench_protocol::Shared::decode(&mut source, memory)),
            Shape::Shared(true) => ours!(::tench_protocol::SharedMut::decode(&mut source, memory)),
            _ => ours!(Decode::decode(&mut source)),
        };
        ours! {
            let Some(#name) = #decoded else { return Rejection::BadArguments.write(reply) };
        }
    });
    let parameters = method.parameters.iter().map(|parameter| {
        let name = &parameter.name;
        match &parameter.of {
            Of::Argument(_) => ours!(#name),
            Of::Caller => ours!(context.caller),
            Of::Powers => ours!(context.powers),
            Of::Later => ours!(::tench_protocol::Later::new(context.replies)),
            Of::Replies => ours!(context.replies),
        }
    });
    let call = ours!(<S as #service>::#name(server, #(#parameters),*));
    let finish = if method.may_reply_later() {
        ours! {
            match #call {
                Ok(Some(value)) => ::tench_protocol::replies::write::<_, #error>(&Ok(value), reply),
                Ok(None) => return Flow::Later,
                Err(error) => ::tench_protocol::replies::write::<(), #error>(&Err(error), reply),
            }
        }
    } else {
        ours!(::tench_protocol::replies::write(&#call, reply))
    };
    ours! {
        #number => {
            #admission
            #(#takes)*
            if !source.is_done() {
                return Rejection::BadArguments.write(reply);
            }
            #finish;
            Flow::Reply
        }
    }
}
