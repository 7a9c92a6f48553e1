// A whole receiver of Inkpad's webhooks, for Java 17 or newer, without any library.
//
//   WEBHOOK_SECRET=whsec_… java Receiver.java
//
// Each event is stored before the response and handled afterwards, so that none is lost when this program is killed,
// and none is handled again when it comes twice. A folder does for that; in your database it is one statement:
//   insert into webhook_events (id, body) values (?, ?) on conflict do nothing

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.Signature;
import java.security.SignatureException;
import java.security.spec.X509EncodedKeySpec;
import java.time.Instant;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Receiver {
    static final String SECRET = System.getenv("WEBHOOK_SECRET");
    static final Path EVENTS = Path.of(setting("EVENTS_DIR", "events"));
    static final int BODY_LIMIT = 1024 * 1024;
    static final int TOLERANCE_SECONDS = 300;
    static final int TRY_AGAIN_SECONDS = 60;
    /** It becomes the name of a file. */
    static final Pattern FILE_NAME = Pattern.compile("\\w{1,64}");
    /** One thread: one event after the other, in the order in which they came. */
    static final ScheduledExecutorService worker = Executors.newSingleThreadScheduledExecutor();

    /**
     * Your code, with your JSON library. What it throws is tried again a minute later, so it has to be able to run
     * twice.
     */
    static void handle(String id, String json) throws Exception {
        System.out.println("handled " + id + " " + json.length() + " characters");
    }

    /** Takes a secret (whsec_…) or a public key (whpk_…). */
    static boolean verify(String secret, String id, String timestamp, String signatures, byte[] body)
            throws GeneralSecurityException {
        if (!timestamp.matches("\\d{1,12}")) return false;
        long age = Instant.now().getEpochSecond() - Long.parseLong(timestamp);
        if (Math.abs(age) > TOLERANCE_SECONDS) return false;
        byte[] key = Base64.getDecoder().decode(secret.replaceFirst("^wh(sec|pk)_", ""));
        byte[] head = (id + "." + timestamp + ".").getBytes(StandardCharsets.UTF_8);
        boolean matches = false;
        for (String one : signatures.split(" ")) {
            byte[] signature;
            try {
                signature = Base64.getDecoder().decode(one.replaceFirst("^v1a?,", ""));
            } catch (IllegalArgumentException notBase64) {
                continue;
            }
            if (secret.startsWith("whpk_")) {
                matches |= one.startsWith("v1a,") && isSigned(key, signature, head, body);
            } else {
                Mac mac = Mac.getInstance("HmacSHA256");
                mac.init(new SecretKeySpec(key, "HmacSHA256"));
                mac.update(head);
                // Takes the same time wherever they differ.
                matches |= one.startsWith("v1,") && MessageDigest.isEqual(mac.doFinal(body), signature);
            }
        }
        return matches;
    }

    static boolean isSigned(byte[] publicKey, byte[] signature, byte[]... parts) throws GeneralSecurityException {
        // What precedes the 32 bytes of an Ed25519 key in DER (RFC 8410).
        String der = "302a300506032b6570032100" + HexFormat.of().formatHex(publicKey);
        var spec = new X509EncodedKeySpec(HexFormat.of().parseHex(der));
        Signature verifier = Signature.getInstance("Ed25519");
        verifier.initVerify(KeyFactory.getInstance("Ed25519").generatePublic(spec));
        for (byte[] part : parts) verifier.update(part);
        try {
            return verifier.verify(signature);
        } catch (SignatureException notASignature) {
            return false;
        }
    }

    static int receive(HttpExchange exchange) throws Exception {
        if (!exchange.getRequestMethod().equals("POST")) return 405;
        // The signature is over these bytes: parse nothing before it is verified.
        byte[] body = exchange.getRequestBody().readNBytes(BODY_LIMIT + 1);
        if (body.length > BODY_LIMIT) return 413;
        String id = header(exchange, "webhook-id");
        String timestamp = header(exchange, "webhook-timestamp");
        if (!verify(SECRET, id, timestamp, header(exchange, "webhook-signature"), body)) return 401;
        if (!FILE_NAME.matcher(id).matches()) return 400;
        if (store(id, body)) worker.execute(() -> work(id));
        return 204;
    }

    static String header(HttpExchange exchange, String name) {
        return Objects.requireNonNullElse(exchange.getRequestHeaders().getFirst(name), "");
    }

    /** False if the event is there already: this is a duplicate. */
    static boolean store(String id, byte[] body) throws IOException {
        Path draft = EVENTS.resolve(id + ".json." + UUID.randomUUID());
        try (FileChannel file = FileChannel.open(draft, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            ByteBuffer left = ByteBuffer.wrap(body);
            while (left.hasRemaining()) file.write(left);
            file.force(true);
        }
        try {
            // The file has this name only once it is whole, and the first one keeps it.
            Files.createLink(EVENTS.resolve(id + ".json"), draft);
            return true;
        } catch (FileAlreadyExistsException duplicate) {
            return false;
        } finally {
            Files.delete(draft);
        }
    }

    static void work(String id) {
        try {
            handle(id, Files.readString(EVENTS.resolve(id + ".json")));
            Files.createFile(EVENTS.resolve(id + ".done"));
        } catch (Exception error) {
            System.err.println(id + " will be tried again: " + error);
            worker.schedule(() -> work(id), TRY_AGAIN_SECONDS, TimeUnit.SECONDS);
        }
    }

    static List<String> left() throws IOException {
        try (Stream<Path> files = Files.list(EVENTS)) {
            return files.map(file -> file.getFileName().toString())
                    .filter(name -> name.endsWith(".json"))
                    .map(name -> name.substring(0, name.length() - ".json".length()))
                    .filter(id -> !Files.exists(EVENTS.resolve(id + ".done")))
                    .sorted()
                    .toList();
        }
    }

    static String setting(String name, String otherwise) {
        return Objects.requireNonNullElse(System.getenv(name), otherwise);
    }

    public static void main(String[] arguments) throws IOException {
        if (SECRET == null) throw new IllegalStateException("Set WEBHOOK_SECRET to the secret of your subscription");
        // Seconds for a request to arrive, and for its response to be read.
        System.setProperty("sun.net.httpserver.maxReqTime", "10");
        System.setProperty("sun.net.httpserver.maxRspTime", "10");
        Files.createDirectories(EVENTS);
        for (String id : left()) worker.execute(() -> work(id));
        String host = setting("HOST", "127.0.0.1");
        int port = Integer.parseInt(setting("PORT", "8787"));
        HttpServer server = HttpServer.create(new InetSocketAddress(host, port), 0);
        server.setExecutor(Executors.newFixedThreadPool(32));
        server.createContext("/", exchange -> {
            int status;
            try {
                status = receive(exchange);
            } catch (Exception error) {
                error.printStackTrace();
                status = 500; // Inkpad tries again.
            }
            exchange.sendResponseHeaders(status, -1);
            exchange.close();
        });
        server.start();
        System.out.println("listening on " + host + ":" + port);
    }
}
