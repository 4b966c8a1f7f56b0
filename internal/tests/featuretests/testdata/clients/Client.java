import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.io.ByteArrayInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;

// Asks by java.net.http what TestRealClients wants to know: Client.java HTTP HTTPS HTTP_1_1|HTTP_2 FILE. With HTTP_2 it asks for an upgrade
// to h2c, as it does wherever nobody tells it not to, and goes on with HTTP/1.1 when it does not get one.
class Client {
	static HttpClient client;
	static String origin;

	static HttpResponse<byte[]> ask(String method, String path, BodyPublisher body) throws Exception {
		return client.send(HttpRequest.newBuilder(URI.create(origin + path)).timeout(Duration.ofSeconds(60)).header("Host", "a.example")
			.method(method, body).build(), BodyHandlers.ofByteArray());
	}

	static void say(HttpResponse<byte[]> answer) { System.out.println(answer.statusCode() + " " + new String(answer.body())); }

	public static void main(String[] arguments) throws Exception {
		System.setProperty("jdk.httpclient.allowRestrictedHeaders", "host");
		origin = "http://" + arguments[0];
		client = HttpClient.newBuilder().version(HttpClient.Version.valueOf(arguments[2])).build();
		byte[] content = Files.readAllBytes(Path.of(arguments[3]));
		for (String path : new String[] {"/1", "/2", "/3"}) {
			say(ask("GET", path, BodyPublishers.noBody()));
		}
		say(ask("POST", "/known", BodyPublishers.ofByteArray(content)));
		say(ask("POST", "/chunked", BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(content))));
		System.out.println(ask("HEAD", "/head", BodyPublishers.noBody()).statusCode() + " head");
		HttpResponse<byte[]> answer = ask("GET", "/redirect", BodyPublishers.noBody());
		System.out.println(answer.statusCode() + " " + answer.headers().firstValue("Location").get());
		answer = ask("GET", "/big", BodyPublishers.noBody());
		System.out.println(answer.statusCode() + " " + answer.body().length + " bytes");
	}
}
